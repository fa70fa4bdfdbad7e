// `node token.mjs someone@example.com` prints an access token of that local account. `scripts/token` calls it.
import { SignInError } from "./accounts.mjs";
import { tokenFor } from "./issue-token.mjs";
import { settingsFromEnvironment } from "./settings.mjs";

try {
  console.log(await tokenFor(process.argv[2], settingsFromEnvironment()));
} catch (error) {
  if (!(error instanceof SignInError)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
