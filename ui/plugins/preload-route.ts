import type { Plugin, Rolldown } from 'vite';

type OutputFile = Rolldown.OutputBundle[string];

type Page = { route: string; pictures?: string[] };

const landing = { route: 'dashboard', pictures: ['remove-after.avif', 'remove-before.avif'] };

/**
 * The file in `src/app/routes` that each path starts with, and the pictures above the fold. A path that ends in `/`
 * stands for the pages of single images. Paths that are missing here load their code when the router asks for it.
 */
const pages: Record<string, Page> = {
  '/': landing,
  '/dashboard': landing,
  '/pricing': { route: 'pricing' },
  '/login': { route: 'login' },
  '/signup': { route: 'signup' },
  '/verify': { route: 'verify' },
  '/background': { route: 'remove-background' },
  '/background/': { route: 'remove-background-image' },
  '/remove-background': { route: 'remove-background' },
  '/remove-background/': { route: 'remove-background-image' },
  '/upscale': { route: 'upscale' },
  '/upscale/': { route: 'upscale-image' },
  '/magic': { route: 'magic' },
  '/magic/': { route: 'magic-image' },
  '/images': { route: 'images' },
  '/images/': { route: 'image' },
};

/**
 * Makes index.html preload the settings and the code of the current path's route, which would otherwise wait for the
 * router's own code. Not in development, where nothing is bundled and a mock may answer.
 */
export function preloadRoute(): Plugin {
  return {
    name: 'preload-route',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler(html, { bundle, chunk }) {
        const files = Object.values(bundle ?? {});
        // index.html already loads these.
        const loaded = new Set<string>();
        if (chunk) addImports(chunk, files, loaded);
        const needs = Object.entries(pages).map(([path, page]) => {
          const scripts = [...scriptsOf(page, files)].filter((name) => !loaded.has(name));
          return [path, [...scripts, ...picturesOf(page, files)].map((name) => `/${name}`)];
        });
        // Before the style sheet, which would block the script.
        const preload = `<script>(${preloadFiles})(${JSON.stringify(Object.fromEntries(needs))})</script>`;
        return html.replace('</title>', (title) => `${title}\n    ${settings}\n    ${preload}`);
      },
    },
  };
}

function scriptsOf({ route }: Page, files: OutputFile[]): Set<string> {
  const entry = files.find(
    (file) => file.type === 'chunk' && file.facadeModuleId?.endsWith(`/src/app/routes/${route}.tsx`),
  );
  if (entry?.type !== 'chunk') throw new Error(`preload-route: no chunk for src/app/routes/${route}.tsx`);
  const scripts = new Set<string>();
  addImports(entry, files, scripts);
  return scripts;
}

/** Adds a chunk and everything it imports. Chunks may import each other in cycles. */
function addImports(chunk: Rolldown.OutputChunk, files: OutputFile[], found: Set<string>) {
  if (found.has(chunk.fileName)) return;
  found.add(chunk.fileName);
  for (const file of files) {
    if (file.type === 'chunk' && chunk.imports.includes(file.fileName)) addImports(file, files, found);
  }
}

function picturesOf({ pictures = [] }: Page, files: OutputFile[]): string[] {
  return pictures.map((name) => {
    const picture = files.find((file) => file.type === 'asset' && file.names.includes(name));
    if (!picture) throw new Error(`preload-route: no picture ${name}`);
    return picture.fileName;
  });
}

const settings = '<link rel="preload" href="/api/config" as="fetch" crossorigin />';

// A string: it runs in the page before anything else, so it must not be compiled or import anything.
const preloadFiles = `function (needs) {
  var path = location.pathname;
  (needs[path] || needs[path.replace(/^(\\/.+\\/)[^/]+$/, '$1')] || []).forEach(function (file) {
    var link = document.createElement('link');
    if (/\\.js$/.test(file)) link.rel = 'modulepreload';
    else {
      link.rel = 'preload';
      link.as = 'image';
      link.fetchPriority = 'high';
      link.type = 'image/avif';
    }
    link.href = file;
    document.head.appendChild(link);
  });
}`;
