# syntax=docker/dockerfile:1
# The operator in an image of its own: static binaries, no shell, no root. Keep RUST_VERSION and rust-toolchain.toml equal.
ARG RUST_VERSION=1.95.0

FROM rust:${RUST_VERSION}-alpine AS build
# A C compiler for ring; musl makes the binary static.
RUN apk add --no-cache musl-dev gcc
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target,sharing=locked \
    cargo build --release --locked --bin slotwright --bin slotwright-agent \
    && install -D -t /out target/release/slotwright target/release/slotwright-agent

FROM gcr.io/distroless/static-debian12:nonroot
LABEL org.opencontainers.image.title="slotwright" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/slotwright/slotwright"
COPY --from=build /out/ /usr/local/bin/
COPY LICENSE /LICENSE
# By number: Kubernetes can only then tell that it is not root.
USER 65532:65532
EXPOSE 8080 8081 9443
ENTRYPOINT ["/usr/local/bin/slotwright"]
CMD ["operator"]
