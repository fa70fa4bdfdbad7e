// Loads the signing key and the cookie key. They are generated once and kept, so that a restart signs nobody out.
import { createHash, generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createFile } from "./files.mjs";

export async function loadKeys(data) {
  await mkdir(data, { recursive: true, mode: 0o700 });
  const path = join(data, "keys.json");
  const existing = await readJson(path);
  if (existing) return existing;
  // The sign-in server and `scripts/token` may both try to create the file; the loser reads the one of the winner.
  await createFile(path, `${JSON.stringify(makeKeys(), null, 2)}\n`);
  return readJson(path);
}

function makeKeys() {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const jwk = privateKey.export({ format: "jwk" });
  const thumbprint = JSON.stringify({ e: jwk.e, kty: jwk.kty, n: jwk.n });
  const kid = createHash("sha256").update(thumbprint).digest("base64url");
  return {
    jwks: { keys: [{ ...jwk, kid, use: "sig", alg: "RS256" }] },
    cookies: [randomBytes(32).toString("base64url")],
  };
}

async function readJson(path) {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}
