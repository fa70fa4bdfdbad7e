// Issues an access token with the same key, `sub` and claims as the sign-in page does.
// It needs no running provider and no package, so this file signs the token itself.
import { createPrivateKey, randomBytes, sign } from "node:crypto";
import { Accounts } from "./accounts.mjs";
import { loadKeys } from "./keys.mjs";

export async function tokenFor(email, settings) {
  const account = await new Accounts(settings.data).findOrCreate(email);
  const [key] = (await loadKeys(settings.data)).jwks.keys;
  const now = Math.floor(Date.now() / 1000);
  const header = { alg: "RS256", typ: "at+jwt", kid: key.kid };
  const claims = {
    email: account.email,
    jti: randomBytes(16).toString("base64url"),
    sub: account.sub,
    iat: now,
    exp: now + settings.tokenSeconds,
    scope: "openid email",
    client_id: settings.clientId,
    iss: settings.issuer,
    aud: settings.audience,
  };
  const body = `${encode(header)}.${encode(claims)}`;
  const signature = sign("sha256", Buffer.from(body), createPrivateKey({ key, format: "jwk" }));
  return `${body}.${signature.toString("base64url")}`;
}

function encode(value) {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
