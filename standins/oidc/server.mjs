// Starts the local identity provider. settings.mjs lists the environment variables that it reads.
import { createProvider } from "./provider.mjs";
import { settingsFromEnvironment } from "./settings.mjs";

try {
  const settings = settingsFromEnvironment();
  const provider = await createProvider(settings);
  const server = provider.listen(settings.port, settings.host, () => {
    console.log(`The local identity provider listens on ${settings.issuer}`);
  });
  server.on("error", (error) => stop(`Cannot listen on ${settings.host}:${settings.port}: ${error.message}`));
  for (const signal of ["SIGTERM", "SIGINT"]) {
    process.on(signal, () => {
      server.close(() => process.exit(0));
      server.closeAllConnections();
    });
  }
} catch (error) {
  stop(error.message);
}

function stop(message) {
  console.error(message);
  process.exit(1);
}
