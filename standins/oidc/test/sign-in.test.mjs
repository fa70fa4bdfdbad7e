import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { tokenFor } from "../issue-token.mjs";
import { createProvider } from "../provider.mjs";
import { settingsFromEnvironment } from "../settings.mjs";
import { Browser, CALLBACK, PAGE } from "./browser.mjs";

const EMAIL = "ada@example.com";
const PASSWORD = "a long enough password";
let data;
let settings;
let server;

async function start() {
  const port = server?.address().port ?? (await freePort());
  settings = settingsFromEnvironment({ RETOUCH_OIDC_PORT: String(port), RETOUCH_OIDC_DATA: data, RETOUCH_PUBLIC_URL: PAGE });
  const provider = await createProvider(settings);
  await new Promise((listening) => {
    server = provider.listen(port, "127.0.0.1", listening);
  });
}

async function freePort() {
  const { createServer } = await import("node:net");
  const probe = createServer();
  await new Promise((listening) => probe.listen(0, "127.0.0.1", listening));
  const { port } = probe.address();
  await new Promise((closed) => probe.close(closed));
  return port;
}

async function restart() {
  const { port } = server.address();
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
  server = { address: () => ({ port }) };
  await start();
}

async function claimsOf(token, type) {
  const [header, claims, signature] = token.split(".");
  const { alg, kid, typ } = decode(header);
  const { keys } = await (await fetch(`${settings.issuer}/jwks`)).json();
  const jwk = keys.find((key) => key.kid === kid);
  const key = createPublicKey({ key: jwk, format: "jwk" });
  assert.equal(alg, "RS256");
  if (type) assert.equal(typ, type);
  assert.ok(verify("sha256", Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, "base64url")), "signature");
  return decode(claims);
}

function decode(part) {
  return JSON.parse(Buffer.from(part, "base64url"));
}

describe("the local identity provider", () => {
  before(async () => {
    data = await mkdtemp(join(tmpdir(), "retouch-oidc-"));
    await start();
  });

  after(async () => {
    server.closeAllConnections();
    server.close();
    await rm(data, { recursive: true });
  });

  test("a new email address creates an account and yields tokens that the API accepts", async () => {
    const tokens = await new Browser(settings.issuer).signIn(EMAIL, PASSWORD);
    assert.equal(tokens.status, 200);
    assert.equal(tokens.origin, PAGE);
    const access = await claimsOf(tokens.access_token, "at+jwt");
    assert.equal(access.iss, settings.issuer);
    assert.equal(access.aud, "retouch-api");
    assert.equal(access.client_id, "retouch");
    assert.equal(access.scope, "openid email");
    assert.equal(access.email, EMAIL);
    assert.ok(access.jti && access.exp === access.iat + 3600);
    const id = await claimsOf(tokens.id_token);
    assert.equal(id.aud, "retouch");
    assert.equal(id.sub, access.sub);
    assert.equal(id.email, EMAIL);
  });

  test("the right password signs in again, a wrong one is rejected", async () => {
    const browser = new Browser(settings.issuer);
    const form = await browser.open({ identity_provider: "Google" });
    const page = await form.response.text();
    assert.match(page, /<label for="email">Email<\/label>/);
    assert.match(page, /You chose Google/);
    assert.match(page, /local stand-in/);
    const refused = await browser.submit(form, EMAIL, "not the password");
    assert.equal(refused.response.status, 400);
    assert.match(await refused.response.text(), /Wrong password for this account/);
    const back = await browser.submit(form, EMAIL.toUpperCase(), PASSWORD);
    assert.equal((await browser.exchange(back.address)).status, 200);
  });

  test("user input is escaped", async () => {
    const browser = new Browser(settings.issuer);
    const refused = await browser.submit(await browser.open(), '"><script>alert(1)</script>', PASSWORD);
    const page = await refused.response.text();
    assert.match(page, /Enter an email address/);
    assert.doesNotMatch(page, /<script>/);
  });

  test("a short password creates no account", async () => {
    const browser = new Browser(settings.issuer);
    const refused = await browser.submit(await browser.open(), "short@example.com", "short");
    assert.match(await refused.response.text(), /at least 8 characters/);
    assert.equal((await readdir(join(data, "accounts"))).length, 1);
  });

  test("passwords are stored as hashes", async () => {
    const [name] = await readdir(join(data, "accounts"));
    const text = await readFile(join(data, "accounts", name), "utf8");
    assert.doesNotMatch(text, new RegExp(PASSWORD));
    assert.equal(JSON.parse(text).password.scheme, "scrypt");
  });

  test("a restart keeps keys, accounts, sessions and refresh tokens", async () => {
    const browser = new Browser(settings.issuer);
    const first = await browser.signIn(EMAIL, PASSWORD);
    await restart();
    const before = await claimsOf(first.access_token, "at+jwt");
    const renewed = await browser.token({ grant_type: "refresh_token", refresh_token: first.refresh_token });
    assert.equal(renewed.status, 200);
    assert.notEqual(renewed.refresh_token, first.refresh_token);
    assert.equal((await claimsOf(renewed.access_token, "at+jwt")).sub, before.sub);
    assert.ok((await browser.open()).address.startsWith(CALLBACK), "still signed in");
  });

  test("a refresh token works once", async () => {
    const browser = new Browser(settings.issuer);
    const { refresh_token } = await browser.signIn(EMAIL, PASSWORD);
    assert.equal((await browser.token({ grant_type: "refresh_token", refresh_token })).status, 200);
    assert.equal((await browser.token({ grant_type: "refresh_token", refresh_token })).error, "invalid_grant");
  });

  test("sign-out with an ID token needs no confirmation, and the next sign-in shows the form", async () => {
    const browser = new Browser(settings.issuer);
    const { id_token } = await browser.signIn(EMAIL, PASSWORD);
    const query = new URLSearchParams({ id_token_hint: id_token, post_logout_redirect_uri: `${PAGE}/login` });
    const page = await (await browser.request(`/session/end?${query}`)).text();
    assert.match(page, /\.click\(\)/);
    const [, xsrf] = page.match(/name="xsrf" value="([^"]+)"/);
    const done = await browser.request("/session/end/confirm", { xsrf, logout: "yes" });
    assert.equal(done.headers.get("location"), `${PAGE}/login`);
    assert.ok((await browser.open()).response, "the form is shown");
  });

  test("sign-out with Cognito parameters redirects only to registered addresses", async () => {
    const browser = new Browser(settings.issuer);
    const { refresh_token } = await browser.signIn(EMAIL, PASSWORD);
    const out = (address) => browser.request(`/logout?${new URLSearchParams({ client_id: "retouch", logout_uri: address })}`);
    assert.equal((await out("http://elsewhere.example/login")).status, 400);
    assert.equal((await out(`${PAGE}/login`)).headers.get("location"), `${PAGE}/login`);
    assert.ok((await browser.open()).response, "the form is shown");
    assert.equal((await browser.token({ grant_type: "refresh_token", refresh_token })).error, "invalid_grant");
  });

  test("localhost and 127.0.0.1 are both allowed, other origins are not", async () => {
    const callback = "http://localhost:8080/authcallback-magic";
    assert.match((await new Browser(settings.issuer).open({ redirect_uri: callback })).address, /\/sign-in\//);
    const foreign = await new Browser(settings.issuer).open({ redirect_uri: "http://elsewhere.example/authcallback" });
    assert.equal(foreign.response.status, 400);
  });

  test("a token from the command line has the same account as one from the sign-in page", async () => {
    const made = await claimsOf(await tokenFor("grace@example.com", settings), "at+jwt");
    const { access_token } = await new Browser(settings.issuer).signIn("grace@example.com", PASSWORD);
    const signedIn = await claimsOf(access_token, "at+jwt");
    assert.deepEqual(Object.keys(made).sort(), Object.keys(signedIn).sort());
    for (const claim of ["sub", "email", "iss", "aud", "client_id", "scope"]) assert.equal(made[claim], signedIn[claim]);
    const refused = await new Browser(settings.issuer);
    assert.equal((await refused.submit(await refused.open(), "grace@example.com", "another password")).response.status, 400);
  });

  test("remote addresses need an explicit permission", () => {
    assert.throws(() => settingsFromEnvironment({ RETOUCH_OIDC_HOST: "0.0.0.0" }), /not a loopback address/);
    const allowed = settingsFromEnvironment({ RETOUCH_OIDC_HOST: "0.0.0.0", RETOUCH_OIDC_ALLOW_REMOTE: "1" });
    assert.equal(allowed.host, "0.0.0.0");
  });
});
