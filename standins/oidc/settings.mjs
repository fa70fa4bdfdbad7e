// Reads the settings from the environment, once.
import { resolve } from "node:path";

const LOOPBACK = new Set(["127.0.0.1", "::1", "localhost"]);

export function settingsFromEnvironment(env = process.env) {
  const host = env.RETOUCH_OIDC_HOST || "127.0.0.1";
  const port = wholeNumber("RETOUCH_OIDC_PORT", env.RETOUCH_OIDC_PORT || "19400");
  if (!LOOPBACK.has(host) && env.RETOUCH_OIDC_ALLOW_REMOTE !== "1") {
    throw new Error(
      `RETOUCH_OIDC_HOST=${host} is not a loopback address. Anyone who can reach the local sign-in page can ` +
        "create accounts. Set RETOUCH_OIDC_ALLOW_REMOTE=1 to allow that.",
    );
  }
  return {
    host,
    port,
    issuer: `http://127.0.0.1:${port}`,
    data: resolve(env.RETOUCH_OIDC_DATA || ".retouch/data/oidc"),
    clientId: env.OIDC_CLIENT_ID || "retouch",
    audience: env.OIDC_AUDIENCE || "retouch-api",
    origins: pageOrigins(env.RETOUCH_PUBLIC_URL || "http://127.0.0.1:8080"),
    tokenSeconds: wholeNumber("RETOUCH_OIDC_TOKEN_SECS", env.RETOUCH_OIDC_TOKEN_SECS || "3600"),
  };
}

// People use 127.0.0.1 and localhost interchangeably, so the page may be served from either.
function pageOrigins(publicUrl) {
  const url = new URL(publicUrl);
  const origins = new Set([url.origin]);
  if (LOOPBACK.has(url.hostname)) {
    for (const name of ["127.0.0.1", "localhost"]) {
      const twin = new URL(url);
      twin.hostname = name;
      origins.add(twin.origin);
    }
  }
  return [...origins];
}

function wholeNumber(name, text) {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1) {
    throw new Error(`${name} must be a positive integer, not '${text}'.`);
  }
  return number;
}
