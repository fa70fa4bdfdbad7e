# The stand-ins for Keycloak, the S3 server and Stripe, see deploy/compose/stand-ins.yml.
ARG BASE
FROM ${BASE}
COPY oidc /oidc
COPY --chmod=755 retouch-standins /usr/local/bin/retouch-standins
USER 10001:10001
WORKDIR /oidc
