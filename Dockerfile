# The image that `berth install` runs: one static binary, no shell, no user but nobody.
#
#   docker build -t berth:0.1.0 .
#
# ./dev image-check builds the binary with the line below and runs it in an empty root, so what is here is what was tried.
ARG RUST=1.95.0
FROM rust:${RUST}-bookworm AS build
ARG PROFILE=dist
WORKDIR /src
COPY . .
# Only the last crate is told: what is linked in is the same either way, and a build for a laptop can be reused.
RUN cargo rustc --locked --profile ${PROFILE} -p berth --bin berth -- -C target-feature=+crt-static
RUN cp target/*/berth /berth

FROM scratch
COPY --from=build /berth /berth
USER 65532:65532
ENTRYPOINT ["/berth"]
