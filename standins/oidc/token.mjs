// `node token.mjs EMAIL…` prints an access token for each of these local accounts. `scripts/token` runs it.
import { SignInError } from "./accounts.mjs";
import { tokenFor } from "./issue-token.mjs";
import { settingsFromEnvironment } from "./settings.mjs";

try {
  const [first, ...more] = process.argv.slice(2);
  for (const email of [first, ...more]) console.log(await tokenFor(email, settingsFromEnvironment()));
} catch (error) {
  if (!(error instanceof SignInError)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
