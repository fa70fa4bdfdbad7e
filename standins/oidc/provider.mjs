// Configures oidc-provider with one public client: the Retouch page.
import { Provider, interactionPolicy } from "oidc-provider";
import { Accounts } from "./accounts.mjs";
import { loadKeys } from "./keys.mjs";
import { messagePage, signOutPage } from "./pages.mjs";
import { useSignIn } from "./sign-in.mjs";
import { Store } from "./store.mjs";

const DAY = 24 * 3600;
export const SCOPE = "openid email";

export async function createProvider(settings) {
  const { clientId, audience, origins, tokenSeconds } = settings;
  const accounts = new Accounts(settings.data);
  const [keys, store] = await Promise.all([loadKeys(settings.data), Store.open(settings.data)]);

  const provider = new Provider(settings.issuer, {
    adapter: store.adapter(),
    jwks: keys.jwks,
    // Browsers send cookies to every port of a host; the port in the name separates two checkouts.
    cookies: { keys: keys.cookies, names: cookieNames(settings.port) },
    clients: [
      {
        client_id: clientId,
        token_endpoint_auth_method: "none",
        // Only native clients may redirect to http://127.0.0.1.
        application_type: "native",
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        redirect_uris: origins.flatMap((origin) => [`${origin}/authcallback`, `${origin}/authcallback-magic`]),
        post_logout_redirect_uris: origins.map((origin) => `${origin}/login`),
      },
    ],
    findAccount: async (_ctx, sub) => {
      const account = await accounts.find(sub);
      return account && { accountId: sub, claims: () => claimsOf(account) };
    },
    claims: { openid: ["sub"], email: ["email", "email_verified"] },
    scopes: ["openid", "email", "offline_access"],
    // The userinfo endpoint rejects access tokens for the API, so the ID token carries the email address.
    conformIdTokenClaims: false,
    extraTokenClaims: async (_ctx, token) => ({ email: (await accounts.find(token.accountId))?.email }),
    extraParams: ["identity_provider"],
    pkce: { required: () => true },
    clientBasedCORS: (_ctx, origin) => origins.includes(origin),
    issueRefreshToken: (_ctx, client) => client.grantTypeAllowed("refresh_token"),
    rotateRefreshToken: true,
    loadExistingGrant: (ctx) => grantEverything(ctx, audience),
    interactions: { policy: policyWithoutConsent(), url: (_ctx, interaction) => `/sign-in/${interaction.uid}` },
    renderError: (ctx, out) => {
      ctx.type = "html";
      ctx.body = messagePage("Something went wrong", out.error_description || out.error);
    },
    ttl: {
      AccessToken: tokenSeconds,
      AuthorizationCode: 60,
      IdToken: tokenSeconds,
      RefreshToken: 30 * DAY,
      Session: 30 * DAY,
      Grant: 30 * DAY,
      Interaction: 3600,
    },
    features: {
      devInteractions: { enabled: false },
      revocation: { enabled: true },
      rpInitiatedLogout: {
        enabled: true,
        // A valid ID token proves that the request comes from the page, so no confirmation is needed.
        logoutSource: (ctx, form) => {
          ctx.body = signOutPage(form, Boolean(ctx.oidc.entities.IdTokenHint));
        },
        postLogoutSuccessSource: (ctx) => {
          ctx.body = messagePage("Signed out", "You are signed out of Retouch.");
        },
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => `urn:${audience}`,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: SCOPE,
          audience,
          accessTokenFormat: "jwt",
          accessTokenTTL: tokenSeconds,
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
  });

  useSignIn(provider, { accounts, origins });
  provider.on("server_error", (_ctx, error) => console.error("The sign-in server failed:", error));
  return provider;
}

function claimsOf(account) {
  return { sub: account.sub, email: account.email, email_verified: true };
}

function cookieNames(port) {
  return { session: `_session_${port}`, interaction: `_interaction_${port}`, resume: `_interaction_resume_${port}` };
}

// The page is the only client, so users need not consent to share their email address with it.
function policyWithoutConsent() {
  const policy = interactionPolicy.base();
  policy.get("consent").checks.clear();
  return policy;
}

async function grantEverything(ctx, audience) {
  const { Grant } = ctx.oidc.provider;
  const { clientId } = ctx.oidc.client;
  const { accountId } = ctx.oidc.session;
  const known = ctx.oidc.session.grantIdFor(clientId);
  const grant = (known && (await Grant.find(known))) || new Grant({ clientId, accountId });
  grant.addOIDCScope("openid email offline_access");
  grant.addResourceScope(`urn:${audience}`, SCOPE);
  await grant.save();
  return grant;
}
