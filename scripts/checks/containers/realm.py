"""Checks the realm file of Keycloak.

Keycloak rejects the whole file for one unknown field, but only at startup. So this checks the names of all fields, and
the settings that sign-in depends on.
"""

import json
import re

# Fields of the representations of Keycloak 26 that the file uses or may use in the future.
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
# Set by deploy/compose/start-keycloak and the environment of the service. Others would not be replaced.
PLACEHOLDERS = {"RETOUCH_PUBLIC_URL"} | {
    f"{broker}_{what}" for broker in ("GOOGLE", "FACEBOOK") for what in ("ENABLED", "CLIENT_ID", "CLIENT_SECRET")
}


def wrong_in_realm(text):
    try:
        realm = json.loads(text)
    except ValueError as error:
        return [f"retouch-realm.json is not valid JSON: {error}"]
    findings = [f"Keycloak has no field {name!r}" for name in unknown_names(realm)]
    findings += [f"${{{name}}} is never set" for name in sorted(set(re.findall(r"\$\{([^}]*)\}", text)) - PLACEHOLDERS)]
    findings += [f"does not hold: {claim}" for claim, holds in claims(realm) if not holds]
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
    """Yields the requirements of the page and the API, each with whether it holds."""
    clients = {client.get("clientId"): client for client in realm.get("clients", [])}
    page = clients.get("retouch", {})
    mappers = {mapper.get("protocolMapper"): mapper.get("config", {}) for mapper in page.get("protocolMappers", [])}
    audience = mappers.get("oidc-audience-mapper", {})
    email = mappers.get("oidc-usermodel-attribute-mapper", {})
    brokers = {broker.get("alias"): broker for broker in realm.get("identityProviders", [])}
    at = "${RETOUCH_PUBLIC_URL}"
    yield "the realm is 'retouch', as in the issuer", realm.get("realm") == "retouch" and realm.get("enabled") is True
    yield (
        "users can register, with their email address as their name",
        (realm.get("registrationAllowed") is True and realm.get("registrationEmailAsUsername") is True),
    )
    yield "email addresses are unique", realm.get("duplicateEmailsAllowed") is False
    yield "brute-force protection is on", realm.get("bruteForceProtected") is True
    yield "the page is a public client", page.get("publicClient") is True
    yield (
        "it uses only the authorization code flow",
        (page.get("standardFlowEnabled") is True and not page.get("implicitFlowEnabled") and not page.get("directAccessGrantsEnabled")),
    )
    yield "it requires PKCE with S256", page.get("attributes", {}).get("pkce.code.challenge.method") == "S256"
    yield (
        "it redirects only to the page",
        (
            set(page.get("redirectUris", [])) == {f"{at}/authcallback", f"{at}/authcallback-magic"}
            and page.get("webOrigins") == [at]
            and page.get("attributes", {}).get("post.logout.redirect.uris") == f"{at}/login"
        ),
    )
    yield (
        "access tokens have the API as their audience",
        (audience.get("included.custom.audience") == "retouch-api" and audience.get("access.token.claim") == "true"),
    )
    yield (
        "access tokens contain the email address",
        (email.get("claim.name") == "email" and email.get("user.attribute") == "email" and email.get("access.token.claim") == "true"),
    )
    yield "tokens contain the subject and the email address", {"basic", "email"} <= set(page.get("defaultClientScopes", []))
    for name in ("google", "facebook"):
        broker = brokers.get(name, {})
        own = broker.get("config", {})
        yield (
            f"{name} has placeholders for its id, its secret and whether it is enabled",
            (
                broker.get("providerId") == name
                and broker.get("enabled") == f"${{{name.upper()}_ENABLED}}"
                and own.get("clientId") == f"${{{name.upper()}_CLIENT_ID}}"
                and own.get("clientSecret") == f"${{{name.upper()}_CLIENT_SECRET}}"
            ),
        )
