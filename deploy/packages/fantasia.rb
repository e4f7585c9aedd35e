cask "fantasia" do
  version "@VERSION@"

  on_macos do
    on_arm do
      sha256 "@darwin_arm64@"
    end
    on_intel do
      sha256 "@darwin_amd64@"
    end
  end
  on_linux do
    on_arm do
      sha256 "@linux_arm64@"
    end
    on_intel do
      sha256 "@linux_amd64@"
    end
  end

  arch arm: "arm64", intel: "amd64"
  os macos: "darwin", linux: "linux"

  url "https://github.com/fantasia-hpo/fantasia/releases/download/v#{version}/fantasia_#{version}_#{os}_#{arch}.tar.gz"
  name "Fantasia"
  desc "Tune the parameters of expensive programs"
  homepage "https://github.com/fantasia-hpo/fantasia"

  binary "fantasia"
@MANPAGES@
  bash_completion "completions/bash/fantasia"
  zsh_completion "completions/zsh/_fantasia"
  fish_completion "completions/fish/fantasia.fish"

  # The program is not signed with a certificate of Apple's.
  postflight do
    if OS.mac?
      system_command "/usr/bin/xattr", args: ["-dr", "com.apple.quarantine", "#{staged_path}/fantasia"]
    end
  end
end
