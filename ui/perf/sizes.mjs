// Shows where the kilobytes are: builds into a temporary folder and attributes each script to its packages.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const MIN_SHOWN_BYTES = 300;
const folder = mkdtempSync(join(tmpdir(), 'retouch-sizes-'));
try {
  const build = ['build', '--sourcemap', '--logLevel', 'warn', '--outDir', folder, '--emptyOutDir'];
  execFileSync('node_modules/.bin/vite', build, {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    stdio: 'inherit',
  });
  const assets = join(folder, 'assets');
  const scripts = readdirSync(assets)
    // A script that only re-exports has no source map and hardly any size.
    .filter((name) => name.endsWith('.js') && existsSync(join(assets, `${name}.map`)))
    .map((name) =>
      sizeOf(name, readFileSync(join(assets, name), 'utf8'), readFileSync(join(assets, `${name}.map`))),
    );
  for (const { name, bytes, parts } of scripts.toSorted((a, b) => b.bytes - a.bytes)) {
    if (bytes < MIN_SHOWN_BYTES) continue;
    print(name, bytes);
    for (const [part, share] of parts) if (share >= MIN_SHOWN_BYTES) print(`    ${part}`, share);
  }
} finally {
  rmSync(folder, { recursive: true });
}

/** Gzip bytes, split among the parts in proportion to their minified code. */
function sizeOf(name, code, map) {
  const bytes = gzipSync(code).length;
  const source = new SourceMap(JSON.parse(map));
  const lengths = new Map();
  for (const [row, line] of code.split('\n').entries()) {
    for (let column = 0; column < line.length; column += 1) {
      const part = partOf(source.findEntry(row, column).originalSource);
      lengths.set(part, (lengths.get(part) ?? 0) + 1);
    }
  }
  const shares = [...lengths].map(([part, length]) => [part, Math.round((length / code.length) * bytes)]);
  return { name, bytes, parts: shares.sort((a, b) => b[1] - a[1]) };
}

function partOf(path = '') {
  const [, inside] = path.split(/.*node_modules\//);
  if (inside)
    return inside
      .split('/')
      .slice(0, inside.startsWith('@') ? 2 : 1)
      .join('/');
  return path.split(/.*\/src\//)[1] ?? '(glue)';
}

function print(name, bytes) {
  process.stdout.write(`${(bytes / 1000).toFixed(1).padStart(7)} kB  ${name}\n`);
}
