#!/bin/sh
# usage: api/buf.sh generate | lint | breaking | image
#   generate   writes the Go code and the OpenAPI document of the API
#   lint       checks the API against buf's standard rules
#   breaking   checks that it is compatible with the released image in api/testdata
#   image      makes the current API the released image
# buf and its plug-ins are built from tools/go.mod, and the validation rules come from
# there too, so nothing but the Go module proxy is needed.
set -eu
cd "$(dirname "$0")"
go mod download -modfile=../tools/go.mod github.com/bufbuild/protovalidate
rules=$(go list -modfile=../tools/go.mod -m -f '{{.Dir}}' github.com/bufbuild/protovalidate)
mkdir -p third_party/buf/validate
install -m 644 "$rules/proto/protovalidate/buf/validate/validate.proto" third_party/buf/validate/
buf() { go tool -modfile=../tools/go.mod buf "$@"; }
image() { buf build --path fantasia --exclude-source-info -o "$1"; }
released=testdata/fantasia.v1.binpb
case "${1-}" in
generate) buf format -w --path fantasia && buf generate && buf generate --template buf.gen.katib.yaml ;;
lint) buf format -d --exit-code --path fantasia && buf lint ;;
breaking)
	now=$(mktemp -d)
	trap 'rm -rf "$now"' EXIT
	image "$now/now.binpb"
	buf breaking "$now/now.binpb" --against "$released" --exclude-imports
	;;
image) image "$released" ;;
*) sed -n '2,6s/^# //p' "$0" >&2; exit 2 ;;
esac
