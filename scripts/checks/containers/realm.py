"""Is the realm's file what Keycloak takes, and what the page and the API need?

Keycloak refuses a whole file for one field that it does not know, and only when it starts. So each name is looked up
here, and the few facts that signing in hangs on are asked for.
"""

import json
import re

# Of Keycloak 26's representations, the fields that our file uses or may come to use.
REALM = set(
    """realm enabled displayName displayNameHtml sslRequired registrationAllowed registrationEmailAsUsername rememberMe
    verifyEmail loginWithEmailAllowed duplicateEmailsAllowed resetPasswordAllowed editUsernameAllowed bruteForceProtected
    permanentLockout maxFailureWaitSeconds minimumQuickLoginWaitSeconds waitIncrementSeconds quickLoginCheckMilliSeconds
    maxDeltaTimeSeconds failureFactor passwordPolicy accessTokenLifespan accessCodeLifespan accessCodeLifespanLogin
    ssoSessionIdleTimeout ssoSessionMaxLifespan revokeRefreshToken refreshTokenMaxReuse defaultSignatureAlgorithm smtpServer
    loginTheme emailTheme internationalizationEnabled supportedLocales defaultLocale eventsEnabled eventsExpiration
    eventsListeners enabledEventTypes adminEventsEnabled attributes clients clientScopes defaultDefaultClientScopes
    defaultOptionalClientScopes identityProviders identityProviderMappers components browserSecurityHeaders""".split()
)
CLIENT = set(
    """clientId name description enabled protocol publicClient standardFlowEnabled implicitFlowEnabled
    directAccessGrantsEnabled serviceAccountsEnabled frontchannelLogout fullScopeAllowed consentRequired rootUrl baseUrl
    adminUrl redirectUris webOrigins attributes defaultClientScopes optionalClientScopes protocolMappers""".split()
)
MAPPER = {"name", "protocol", "protocolMapper", "config"}
BROKER = set(
    """alias displayName providerId enabled trustEmail storeToken linkOnly hideOnLogin firstBrokerLoginFlowAlias
    postBrokerLoginFlowAlias config""".split()
)
COMPONENT = {"name", "providerId", "subType", "subComponents", "config"}
# Set by deploy/compose/start-keycloak and the service's environment; others would stay as they stand.
PLACEHOLDERS = {"RETOUCH_PUBLIC_URL"} | {
    f"{broker}_{what}" for broker in ("GOOGLE", "FACEBOOK") for what in ("ENABLED", "CLIENT_ID", "CLIENT_SECRET")
}


def wrong_in_realm(text):
    try:
        realm = json.loads(text)
    except ValueError as error:
        return [f"retouch-realm.json is no JSON: {error}"]
    findings = [f"Keycloak has no setting {name!r}" for name in unknown_names(realm)]
    findings += [f"${{{name}}} is set nowhere" for name in sorted(set(re.findall(r"\$\{([^}]*)\}", text)) - PLACEHOLDERS)]
    findings += [f"not so: {claim}" for claim, holds in claims(realm) if not holds]
    return [f"retouch-realm.json: {finding}" for finding in findings]


def unknown_names(realm):
    yield from realm.keys() - REALM
    for client in realm.get("clients", []):
        yield from client.keys() - CLIENT
        for mapper in client.get("protocolMappers", []):
            yield from mapper.keys() - MAPPER
    for broker in realm.get("identityProviders", []):
        yield from broker.keys() - BROKER
    for parts in realm.get("components", {}).values():
        for part in parts:
            yield from part.keys() - COMPONENT


def claims(realm):
    """What the page and the API need, each with whether it holds."""
    clients = {client.get("clientId"): client for client in realm.get("clients", [])}
    page = clients.get("retouch", {})
    mappers = {mapper.get("protocolMapper"): mapper.get("config", {}) for mapper in page.get("protocolMappers", [])}
    audience = mappers.get("oidc-audience-mapper", {})
    email = mappers.get("oidc-usermodel-attribute-mapper", {})
    brokers = {broker.get("alias"): broker for broker in realm.get("identityProviders", [])}
    at = "${RETOUCH_PUBLIC_URL}"
    yield "the realm is 'retouch', as the issuer says", realm.get("realm") == "retouch" and realm.get("enabled") is True
    yield "people can register, with their email as their name", (
        realm.get("registrationAllowed") is True and realm.get("registrationEmailAsUsername") is True
    )
    yield "one email is one account", realm.get("duplicateEmailsAllowed") is False
    yield "passwords cannot be guessed at will", realm.get("bruteForceProtected") is True
    yield "the page is a public client", page.get("publicClient") is True
    yield "it signs in by code alone", (
        page.get("standardFlowEnabled") is True
        and not page.get("implicitFlowEnabled")
        and not page.get("directAccessGrantsEnabled")
    )
    yield "the code is bound by PKCE with S256", page.get("attributes", {}).get("pkce.code.challenge.method") == "S256"
    yield "it returns to the page only", (
        set(page.get("redirectUris", [])) == {f"{at}/authcallback", f"{at}/authcallback-magic"}
        and page.get("webOrigins") == [at]
        and page.get("attributes", {}).get("post.logout.redirect.uris") == f"{at}/login"
    )
    yield "access tokens name the API", (
        audience.get("included.custom.audience") == "retouch-api" and audience.get("access.token.claim") == "true"
    )
    yield "access tokens carry the email", (
        email.get("claim.name") == "email" and email.get("user.attribute") == "email" and email.get("access.token.claim") == "true"
    )
    yield "tokens carry their subject and the email", {"basic", "email"} <= set(page.get("defaultClientScopes", []))
    for name in ("google", "facebook"):
        broker = brokers.get(name, {})
        own = broker.get("config", {})
        yield f"{name} takes its id, its secret and whether it is on from outside", (
            broker.get("providerId") == name
            and broker.get("enabled") == f"${{{name.upper()}_ENABLED}}"
            and own.get("clientId") == f"${{{name.upper()}_CLIENT_ID}}"
            and own.get("clientSecret") == f"${{{name.upper()}_CLIENT_SECRET}}"
        )
