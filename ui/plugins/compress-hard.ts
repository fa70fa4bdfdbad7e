import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';

/** Writes a Brotli and a gzip copy beside each text file of the build, for the API to serve as they are. */
export function compressHard(): Plugin {
  let folder = 'dist';
  return {
    name: 'compress-hard',
    apply: 'build',
    configResolved(config) {
      folder = config.build.outDir;
    },
    // Not closeBundle, which also runs after a failure and would hide it.
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
