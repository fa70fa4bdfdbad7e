import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';

/** Writes Brotli and gzip copies of the build's text files, which the API serves as they are. */
export function precompress(): Plugin {
  let folder = 'dist';
  return {
    name: 'precompress',
    apply: 'build',
    configResolved(config) {
      folder = config.build.outDir;
    },
    // Not closeBundle: it also runs after a failure and would hide it.
    writeBundle() {
      for (const entry of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(js|css|html|svg|json)$/.test(entry)) {
          continue;
        }
        const bytes = readFileSync(join(folder, entry));
        writeFileSync(join(folder, `${entry}.br`), brotliCompressSync(bytes));
        writeFileSync(join(folder, `${entry}.gz`), gzipSync(bytes, { level: 9 }));
      }
    },
  };
}
