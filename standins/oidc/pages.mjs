// The HTML pages of the provider. They work without JavaScript and load nothing from other servers.
const STYLE = `
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#16181d;--soft:#5b6270;--line:#8a92a1;--go:#3538cd;--go-ink:#fff;--bad:#b42318}
@media(prefers-color-scheme:dark){:root{--page:#101217;--card:#191c23;--ink:#f1f3f7;--soft:#a6adba;--line:#6b7383;--go:#a4a8ff;--go-ink:#101217;--bad:#ff9c92}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{width:100%;max-width:24rem;background:var(--card);border-radius:1rem;padding:2rem;box-shadow:0 1px 3px #0003}
h1{margin:0 0 .25rem;font-size:1.5rem;line-height:1.2}
p{margin:.5rem 0;color:var(--soft)}
label{display:block;margin-top:1rem;font-weight:600}
input{display:block;width:100%;margin-top:.25rem;padding:.625rem .75rem;font:inherit;color:inherit;background:transparent;border:1px solid var(--line);border-radius:.5rem}
button{width:100%;margin-top:1.5rem;padding:.75rem;font:inherit;font-weight:600;color:var(--go-ink);background:var(--go);border:0;border-radius:.5rem;cursor:pointer}
input:focus-visible,button:focus-visible{outline:3px solid var(--go);outline-offset:2px}
.error{color:var(--bad);font-weight:600}
.note{font-size:.875rem;border-top:1px solid var(--line);margin-top:1.5rem;padding-top:1rem}`;

export function signInPage({ action, email = "", error, provider }) {
  const wrong = error ? ' aria-invalid="true" aria-describedby="error"' : "";
  return page("Sign in to Retouch", `
<h1>Sign in to Retouch</h1>
<p>A new email address creates a new account.</p>
${provider ? `<p>You chose ${escape(provider)}. It is not available here; please use an email address instead.</p>` : ""}
${error ? `<p class="error" id="error" role="alert">${escape(error)}</p>` : ""}
<form method="post" action="${escape(action)}">
<label for="email">Email</label>
<input id="email" name="email" type="email" autocomplete="username" required value="${escape(email)}"${email ? "" : " autofocus"}${wrong}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required${email ? " autofocus" : ""}${wrong}>
<button type="submit">Continue</button>
</form>
<p class="note">This is a local stand-in for an identity provider. Accounts created here stay on this machine.</p>`);
}

export function messagePage(title, text) {
  return page(title, `<h1>${escape(title)}</h1>\n<p>${escape(text)}</p>`);
}

/** `form` is the one that oidc-provider generates, with its CSRF token; `auto` submits it immediately if JavaScript is on. */
export function signOutPage(form, auto) {
  return page("Sign out of Retouch", `
<h1>Sign out of Retouch?</h1>
${form}
<button type="submit" form="op.logoutForm" name="logout" value="yes">Sign out</button>
${auto ? `<script>document.querySelector("button").click()</script>` : ""}`);
}

function page(title, body) {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<main>${body}
</main>
</body>
</html>
`;
}

function escape(text) {
  return String(text).replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
