// A minimal browser for sign-in: keeps cookies and follows redirects one at a time.
import { createHash, randomBytes } from "node:crypto";

export const PAGE = "http://127.0.0.1:8080";
export const CALLBACK = `${PAGE}/authcallback`;

export class Browser {
  cookies = new Map();

  constructor(issuer) {
    this.issuer = issuer;
  }

  async request(address, form) {
    const url = new URL(address, this.issuer);
    const response = await fetch(url, {
      method: form ? "POST" : "GET",
      body: form && new URLSearchParams(form),
      headers: { cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      redirect: "manual",
    });
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = line.split(";")[0].split(/=(.*)/s);
      if (value && !/expires=Thu, 01 Jan 1970/i.test(line)) this.cookies.set(name, value);
      else this.cookies.delete(name);
    }
    return response;
  }

  /** Follows redirects until the provider returns a page or redirects to the Retouch page. */
  async follow(address) {
    for (let hops = 0; hops < 10; hops++) {
      const response = await this.request(address);
      const location = response.headers.get("location");
      if (!location) return { response, address };
      address = new URL(location, this.issuer).href;
      if (address.startsWith(PAGE)) return { address };
    }
    throw new Error("too many redirects");
  }

  /** Opens the sign-in form; returns to the Retouch page immediately if already signed in. */
  async open(extra = {}) {
    this.verifier = randomBytes(32).toString("base64url");
    const query = new URLSearchParams({
      client_id: "retouch",
      response_type: "code",
      redirect_uri: CALLBACK,
      scope: "openid email",
      state: "a-state",
      code_challenge: createHash("sha256").update(this.verifier).digest("base64url"),
      code_challenge_method: "S256",
      ...extra,
    });
    return this.follow(`/auth?${query}`);
  }

  async submit(form, email, password) {
    const response = await this.request(form.address, { email, password });
    if (response.status !== 303) return { response };
    return this.follow(response.headers.get("location"));
  }

  async signIn(email, password) {
    const back = await this.submit(await this.open(), email, password);
    return this.exchange(back.address);
  }

  exchange(address) {
    const code = new URL(address).searchParams.get("code");
    return this.token({ grant_type: "authorization_code", code, redirect_uri: CALLBACK, code_verifier: this.verifier });
  }

  async token(form) {
    const response = await fetch(new URL("/token", this.issuer), {
      method: "POST",
      body: new URLSearchParams({ client_id: "retouch", ...form }),
      headers: { origin: PAGE },
    });
    return { status: response.status, origin: response.headers.get("access-control-allow-origin"), ...(await response.json()) };
  }
}
