# The image: one static binary and nothing else, no shell, no library, not run by root.
#
#   docker build --tag gatewright:0.1.0 .
#
# It needs a builder with BuildKit and network access to the Rust and Alpine mirrors; nothing of the host's toolchain is used.
# For another architecture build it there, or with `--platform` and emulation: the TLS library brings C and assembler code, and
# Alpine's compiler makes it for the machine it runs on.

ARG RUST_VERSION=1.95

FROM rust:${RUST_VERSION}-alpine AS build
# A C compiler and the kernel's headers, for the TLS library and the allocator. Alpine's C library is musl, against which Rust
# links statically.
RUN apk add --no-cache build-base linux-headers
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --release --locked --package gatewright && \
    cp target/release/gatewright /gatewright && \
    # A binary that wants a loader would not start from scratch.
    ! readelf --program-headers /gatewright | grep -q INTERP

FROM scratch
COPY --from=build /gatewright /usr/local/bin/gatewright
# For `kubectl exec deploy/gatewright -- gatewright status`.
ENV PATH=/usr/local/bin
# Nobody: the same number as in the chart, which also asks for it by number because there is no file of names here.
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/gatewright"]
