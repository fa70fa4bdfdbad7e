#!/usr/bin/env node
// Starts Firefox for Playwright, which speaks the WebDriver BiDi of the newest Firefox. Debian has the ESR, which is up
// to a year older, so this passes on all messages between the two and bridges the differences.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { WebSocket, WebSocketServer } from 'ws';

const LISTENING = 'WebDriver BiDi listening on ';

const browser = spawn(process.env.FIREFOX ?? '/usr/bin/firefox-esr', process.argv.slice(2), {
  stdio: ['ignore', 'ignore', 'pipe'],
});
browser.on('exit', (code) => process.exit(code ?? 1));
createInterface(browser.stderr).on('line', (line) => {
  if (line.startsWith(LISTENING)) relayTo(line.slice(LISTENING.length));
  else process.stderr.write(`${line}\n`);
});

function relayTo(address) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 }, () =>
    process.stderr.write(`${LISTENING}ws://127.0.0.1:${server.address().port}\n`),
  );
  server.on('connection', (playwright, { url }) => {
    const firefox = new WebSocket(address + url);
    const opened = once(firefox, 'open');
    playwright.on('message', (message) => opened.then(() => firefox.send(String(message))));
    firefox.on('message', (message) => playwright.send(JSON.stringify(updated(JSON.parse(message)))));
    playwright.on('close', () => firefox.close());
    firefox.on('close', () => playwright.close());
  });
}

function updated(message) {
  // Playwright sends some commands for every page, such as the color scheme, although our tests need none of them.
  if (message.error === 'unknown command') return { type: 'success', id: message.id, result: {} };
  // Playwright ignores downloads without an id.
  if (message.method?.startsWith('browsingContext.download')) message.params.download ??= message.params.url;
  return message;
}
