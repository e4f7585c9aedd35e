package command

import (
	"fmt"
	"slices"
	"strings"
)

// passed are the variables of the worker that every program gets: what a program needs to
// run on this machine, and what holds no secret. NAME* stands for all names that begin
// with NAME.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "TERM", "TZ", "LANG", "LANGUAGE", "LC_*",
	"TMPDIR", "TEMP", "TMP", "XDG_*", "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	"PYTHON*", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "MPLBACKEND", "HF_HOME",
	"JAVA_HOME", "R_HOME", "R_LIBS*", "JULIA_DEPOT_PATH", "JULIA_LOAD_PATH", "GOMAXPROCS", "GOMEMLIMIT", "MALLOC_*",
	"CUDA_*", "CUDNN_*", "NVIDIA_*", "NCCL_*", "GPU_*", "ROCM_*", "ROCR_*", "HIP_*", "HSA_*", "ONEAPI_*", "SYCL_*", "ZE_*",
	"XLA_*", "JAX_PLATFORMS", "TORCH_*", "PYTORCH_*", "TF_CPP_*", "TF_FORCE_GPU_ALLOW_GROWTH",
	"OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "BLIS_*", "NUMEXPR_*", "VECLIB_*",
	"OTEL_*", "POD_*", "NODE_NAME", "KUBERNETES_SERVICE_*",
}

// secret are the endings of names that only an operator's own list passes.
var secret = []string{"_HEADERS", "_KEY", "_TOKEN", "_SECRET", "_PASSWORD"}

// CheckPassEnv checks a list of names for PassEnv.
func CheckPassEnv(names []string) error {
	for _, name := range names {
		bare := strings.TrimSuffix(name, "*")
		if name == "" || strings.ContainsAny(bare, "=*, \t\n\x00") {
			return fmt.Errorf("%q: want the name of a variable, PREFIX_* for all names with that prefix, or * for all", name)
		}
	}
	return nil
}

// PassEnv divides an environment into what programs get (NAME=value, in its order) and
// the sorted names of the other variables. Programs get the variables that they need to
// run on this machine (see docs/tune/attach.md) and those that names lists, in which NAME*
// stands for all names that begin with NAME. No program gets variables that begin with
// FANTASIA_, which are the worker's own settings.
func PassEnv(environ, names []string) (kept, withheld []string) {
	kept = []string{} // nil would mean all, to Options.Environ
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.HasPrefix(name, prefix) {
			continue
		}
		hidden := slices.ContainsFunc(secret, func(end string) bool { return strings.HasSuffix(strings.ToUpper(name), end) }) || hasLogin(value)
		if matches(names, name) || !hidden && matches(passed, name) {
			kept = append(kept, entry)
		} else {
			withheld = append(withheld, name)
		}
	}
	slices.Sort(withheld)
	return kept, withheld
}

// hasLogin reports whether a value is an address with a login, such as
// https://user:password@host, or a list with one.
func hasLogin(value string) bool {
	_, rest, found := strings.Cut(value, "://")
	return found && strings.Contains(rest, "@")
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if start, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(name, start)
		}
		return pattern == name
	})
}
