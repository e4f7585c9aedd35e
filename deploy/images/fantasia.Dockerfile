# syntax=docker/dockerfile:1
# The image that `make images` makes without an engine, for those who have one:
#   docker build -f deploy/images/fantasia.Dockerfile \
#     --build-arg VERSION="$(git describe --tags --always)" --build-arg REVISION="$(git rev-parse HEAD)" \
#     --build-arg SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)" -t ghcr.io/fantasia-hpo/fantasia .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY deploy/images/build/go.mod deploy/images/build/go.sum deploy/images/build/
RUN go mod download && cd deploy/images/build && go mod download
COPY . .
ARG TARGETARCH VERSION=dev REVISION SOURCE_DATE_EPOCH=0
RUN go run -C deploy/images/build . --arch "$TARGETARCH" --version "$VERSION" --revision "$REVISION" --rootfs /rootfs fantasia

FROM scratch
COPY --from=build /rootfs /
ARG VERSION=dev REVISION
LABEL org.opencontainers.image.title="Fantasia" \
      org.opencontainers.image.description="The command line" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/fantasia-hpo/fantasia" \
      org.opencontainers.image.url="https://github.com/fantasia-hpo/fantasia" \
      org.opencontainers.image.vendor="Fantasia"
ENV PATH=/usr/local/bin
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/fantasia"]
