package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/json"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// made makes the image of the training example into a directory of its own.
func made(t *testing.T) (o options, img v1.Image) {
	t.Helper()
	o = options{
		root: "../../..", out: t.TempDir(), arch: "amd64", repository: "example.org/x", version: "v1.2.3+dirty",
		revision: "0123abcd", created: time.Unix(1_700_000_000, 0).UTC(),
	}
	p, err := choose([]string{"digits"})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.make(t.Context(), p[0]); err != nil {
		t.Fatal(err)
	}
	img, err = tarball.ImageFromPath(filepath.Join(o.out, "digits.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return o, img
}

// entry is a file of an image, as a container would see it.
type entry struct {
	header  *tar.Header
	content []byte
}

func content(t *testing.T, img v1.Image) map[string]entry {
	t.Helper()
	all := map[string]entry{}
	r := mutate.Extract(img)
	defer r.Close()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		all["/"+strings.TrimSuffix(h.Name, "/")] = entry{h, b}
	}
}

func TestImage(t *testing.T) {
	o, img := made(t)
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := config.Config.User, "65532:65532"; got != want {
		t.Errorf("the image runs as %q, want %q: restricted pods must not run as root", got, want)
	}
	// The keys that https://github.com/opencontainers/image-spec/blob/main/annotations.md defines.
	for key, want := range map[string]string{"title": "Handwritten digits", "version": "v1.2.3+dirty", "revision": "0123abcd",
		"licenses": "Apache-2.0", "created": "2023-11-14T22:13:20Z", "source": ourSource} {
		if got := config.Config.Labels["org.opencontainers.image."+key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	files := content(t, img)
	if got := os.FileMode(files["/tmp"].header.Mode); got != 0o1777 {
		t.Errorf("the mode of /tmp is %o, want 1777", got)
	}
	if h := files["/var/lib/fantasia"].header; h.Uid != user || h.Typeflag != tar.TypeDir {
		t.Errorf("/var/lib/fantasia is %+v, want a directory of user %d", h, user)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(files["/etc/ssl/certs/ca-certificates.crt"].content) {
		t.Error("there are no certificates")
	}
	count := 0
	for rest := files["/etc/ssl/certs/ca-certificates.crt"].content; ; count++ {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		if _, err := x509.ParseCertificate(b.Bytes); err != nil {
			t.Errorf("certificate %d: %v", count, err)
		}
	}
	if count < 100 {
		t.Errorf("there are %d certificates, want Mozilla's, which are more than 100", count)
	}
	beside, err := os.ReadFile(filepath.Join(o.out, "digits.spdx.json"))
	if err != nil || !bytes.Equal(beside, files["/usr/share/sbom/digits.spdx.json"].content) {
		t.Errorf("the bill of materials in the image is another than the one beside it (%v)", err)
	}
	runs(t, config.Config.Entrypoint[0], files)
}

// runs holds that the entry point is a static program.
func runs(t *testing.T, path string, files map[string]entry) {
	t.Helper()
	f, ok := files[path]
	if !ok || f.header.Mode != 0o755 {
		t.Fatalf("the entry point %s is not among the image's programs", path)
	}
	bin := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(bin, f.content, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), bin, "--epochs", "1", "--hidden", "8").CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"fantasia"`) {
		t.Errorf("the program says %q (%v), want a report", out, err)
	}
}

// TestReproducible builds everything again, the standard library too, elsewhere.
func TestReproducible(t *testing.T) {
	read := func(o options) []byte {
		b, err := os.ReadFile(filepath.Join(o.out, "digits.tar"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first, _ := made(t)
	t.Setenv("GOCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-buildvcs=true")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("TZ", "Asia/Tokyo")
	second, _ := made(t)
	if !bytes.Equal(read(first), read(second)) {
		t.Error("the same sources made two different archives")
	}
}

func TestBillListsWhatIsLinked(t *testing.T) {
	dir := t.TempDir()
	o := options{root: "../../..", arch: "amd64", version: "v1"}
	p, err := choose([]string{"worker"})
	if err != nil {
		t.Fatal(err)
	}
	path, _, err := o.build(t.Context(), p[0], p[0].pkg, dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := o.files(t.Context(), p[0], dir)
	if err != nil {
		t.Fatal(err)
	}
	var doc spdxDocument
	if err := json.Unmarshal(f.bill, &doc); err != nil {
		t.Fatal(err)
	}
	listed, ids := map[string]string{}, map[string]bool{}
	for _, q := range doc.Packages {
		listed[q.Name] = q.VersionInfo
		if ids[q.ID] {
			t.Errorf("two packages have the id %s", q.ID)
		}
		ids[q.ID] = true
	}
	// The oracle is the toolchain's own reading of the program.
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if listed[m.Path] != m.Version {
			t.Errorf("%s is linked at %s, listed at %q", m.Path, m.Version, listed[m.Path])
		}
	}
	if got, want := len(listed), len(info.Deps)+2; got != want {
		t.Errorf("%d packages are listed, want %d: modules, the program and the standard library", got, want)
	}
	if listed["github.com/nats-io/nats.go"] == "" {
		t.Error("the worker's bill does not list nats.go")
	}
	for _, r := range doc.Relationships {
		if !ids[r.Related] || r.Element != doc.ID && !ids[r.Element] {
			t.Errorf("%+v names what is not listed", r)
		}
	}
}

// A program that was built before has the same bill as in its image.
func TestBillOfAProgram(t *testing.T) {
	dir := t.TempDir()
	o := options{root: "../../..", arch: "arm64", version: "v1", created: time.Unix(1_700_000_000, 0).UTC()}
	p, err := choose([]string{"digits"})
	if err != nil {
		t.Fatal(err)
	}
	path, _, err := o.build(t.Context(), p[0], p[0].pkg, dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := o.files(t.Context(), p[0], t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "digits.spdx.json")
	if err := run(t.Context(),
		[]string{"--revision=r", "--version=v1", "--epoch=1700000000", "--bill-of=" + path, "--bill=" + to}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, f.bill) {
		t.Errorf("the bill of the program is\n%s\nthe image's\n%s", got, f.bill)
	}
	if err := run(t.Context(), []string{"--revision=r", "--bill-of=nothing", "--bill=" + to}); err == nil ||
		!strings.Contains(err.Error(), `no image "nothing"`) {
		t.Errorf("a program that is none of ours: %v", err)
	}
}

// TestDockerfiles holds what docker build makes against what `make images` makes.
func TestDockerfiles(t *testing.T) {
	paths, err := filepath.Glob("../*.Dockerfile")
	if err != nil || len(paths) < 3 {
		t.Fatalf("found the Dockerfiles %q (%v), want coordinator's, worker's, kubeworker's and fantasia's", paths, err)
	}
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".Dockerfile")
		chosen, err := choose([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		o := options{version: "${VERSION}", revision: "${REVISION}", arch: "amd64"}
		img, err := o.image(chosen[0], files{version: o.version})
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c := config.Config
		want := []string{"USER " + c.User, "WORKDIR " + c.WorkingDir, `ENTRYPOINT ["` + c.Entrypoint[0] + `"]`, "--rootfs /rootfs " + name,
			"FROM scratch", "COPY --from=build /rootfs /"}
		for _, env := range c.Env {
			want = append(want, "ENV "+env)
		}
		for key, value := range c.Labels {
			if !strings.HasSuffix(key, ".created") { // of the build, which Docker notes itself
				want = append(want, key+`="`+value+`"`)
			}
		}
		goVersion, _, _ := strings.Cut(strings.SplitAfter(string(mod), "\ngo ")[1], "\n")
		minor := strings.Join(strings.Split(goVersion, ".")[:2], ".")
		want = append(want, "golang:"+minor+" ")
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s does not have %s", path, w)
			}
		}
	}
}

func TestRootfsIsTheImage(t *testing.T) {
	o := options{root: "../../..", rootfs: t.TempDir(), arch: "amd64", version: "v1.2.3+dirty", created: time.Unix(1_700_000_000, 0).UTC()}
	p, err := choose([]string{"digits"})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.make(t.Context(), p[0]); err != nil {
		t.Fatal(err)
	}
	_, img := made(t)
	var want, got []string
	for path := range content(t, img) {
		want = append(want, path)
	}
	err = filepath.WalkDir(o.rootfs, func(path string, _ fs.DirEntry, err error) error {
		if rel := strings.TrimPrefix(path, o.rootfs); rel != "" {
			got = append(got, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the directory has\n%q, the image\n%q", got, want)
	}
}
