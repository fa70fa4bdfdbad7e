// Routes: the sign-in form, and sign-out with the parameters of Amazon Cognito.
import { SignInError } from "./accounts.mjs";
import { messagePage, signInPage } from "./pages.mjs";

const MAX_FORM_BYTES = 16 * 1024;

export function useSignIn(provider, { accounts, origins }) {
  provider.use(async (ctx, next) => {
    if (ctx.path.startsWith("/sign-in/")) return signIn(provider, accounts, origins, ctx);
    if (ctx.path === "/logout" && ctx.method === "GET") return signOut(provider, ctx);
    if (ctx.path === "/healthz") {
      ctx.body = "ok\n";
      return;
    }
    return next();
  });
}

async function signIn(provider, accounts, origins, ctx) {
  ctx.set("cache-control", "no-store");
  // Browsers apply form-action to the following redirects as well, so it must include the origins of the page.
  ctx.set(
    "content-security-policy",
    `default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self' ${origins.join(" ")}; frame-ancestors 'none'`,
  );
  ctx.type = "html";
  let interaction;
  try {
    interaction = await provider.interactionDetails(ctx.req, ctx.res);
  } catch {
    ctx.status = 400;
    ctx.body = messagePage("This sign-in has expired", "Please go back to Retouch and start again.");
    return;
  }
  const page = { action: ctx.path, provider: interaction.params.identity_provider };
  if (ctx.method !== "POST") {
    ctx.body = signInPage({ ...page, email: interaction.params.login_hint });
    return;
  }
  const form = await readForm(ctx.req);
  const email = form.get("email") ?? "";
  try {
    const account = await accounts.signIn(email, form.get("password") ?? "");
    const result = { login: { accountId: account.sub, remember: true } };
    ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, result, { mergeWithLastSubmission: false }));
    ctx.status = 303;
  } catch (error) {
    if (!(error instanceof SignInError)) throw error;
    ctx.status = 400;
    ctx.body = signInPage({ ...page, email, error: error.message });
  }
}

async function signOut(provider, ctx) {
  const clientId = String(ctx.query.client_id ?? "");
  const address = String(ctx.query.logout_uri ?? "");
  const client = clientId && (await provider.Client.find(clientId).catch(() => undefined));
  if (!client?.postLogoutRedirectUris.includes(address)) {
    ctx.status = 400;
    ctx.type = "html";
    ctx.body = messagePage("Something went wrong", "Unknown client_id or logout_uri.");
    return;
  }
  const session = await provider.Session.get(ctx);
  const grantId = session.accountId && session.grantIdFor(clientId);
  if (grantId) {
    for (const kind of [provider.RefreshToken, provider.AuthorizationCode]) await kind.revokeByGrantId(grantId);
    await (await provider.Grant.find(grantId))?.destroy();
  }
  if (session.accountId) await session.destroy();
  ctx.cookies.set(provider.cookieName("session"), null);
  ctx.redirect(address);
}

async function readForm(request) {
  let text = "";
  for await (const part of request) {
    text += part;
    if (text.length > MAX_FORM_BYTES) throw new SignInError("The form is too large.");
  }
  return new URLSearchParams(text);
}
