import type { Plugin, Rolldown } from 'vite';

type File = Rolldown.OutputBundle[string];

type Page = { route: string; pictures?: string[] };

const landing = { route: 'dashboard', pictures: ['remove-after.avif', 'remove-before.avif'] };

/**
 * Which file of `src/app/routes` an address begins with, and the pictures that are seen first; an address that ends in
 * `/` stands for those of single images. Whatever is missing here is found later, when the router asks for it.
 */
const pages: Record<string, Page> = {
  '/': landing,
  '/dashboard': landing,
  '/pricing': { route: 'pricing' },
  '/login': { route: 'login' },
  '/signup': { route: 'signup' },
  '/background': { route: 'remove-background' },
  '/background/': { route: 'remove-background-of' },
  '/remove-background': { route: 'remove-background' },
  '/remove-background/': { route: 'remove-background-of' },
  '/upscale': { route: 'upscale' },
  '/upscale/': { route: 'upscale-of' },
  '/magic': { route: 'magic' },
  '/magic/': { route: 'magic-of' },
  '/images': { route: 'images' },
  '/images/': { route: 'image' },
};

/**
 * What a page needs is on its way while index.html is still being read: the settings, and for each address of
 * {@link pages} the code of its route, which would else wait for the router's own code. Not in development, where a
 * mock may answer and nothing is bundled.
 */
export function askEarly(): Plugin {
  return {
    name: 'ask-early',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler(html, { bundle, chunk }) {
        const files = Object.values(bundle ?? {});
        // index.html names these itself.
        const known = new Set<string>();
        if (chunk) addImports(chunk, files, known);
        const needs = Object.entries(pages).map(([address, page]) => {
          const fresh = [...scriptsOf(page, files)].filter((name) => !known.has(name));
          return [address, [...fresh, ...picturesOf(page, files)].map((name) => `/${name}`)];
        });
        // Before the style sheet: a script after it would wait for it.
        const asks = `<script>(${ask})(${JSON.stringify(Object.fromEntries(needs))})</script>`;
        return html.replace('</title>', (title) => `${title}\n    ${settings}\n    ${asks}`);
      },
    },
  };
}

function scriptsOf({ route }: Page, files: File[]): Set<string> {
  const entry = files.find(
    (file) => file.type === 'chunk' && file.facadeModuleId?.endsWith(`/src/app/routes/${route}.tsx`),
  );
  if (entry?.type !== 'chunk') throw new Error(`ask-early: no chunk of src/app/routes/${route}.tsx`);
  const scripts = new Set<string>();
  addImports(entry, files, scripts);
  return scripts;
}

/** Chunks import each other in circles, so what was found is not looked at again. */
function addImports(chunk: Rolldown.OutputChunk, files: File[], found: Set<string>) {
  if (found.has(chunk.fileName)) return;
  found.add(chunk.fileName);
  for (const file of files) {
    if (file.type === 'chunk' && chunk.imports.includes(file.fileName)) addImports(file, files, found);
  }
}

function picturesOf({ pictures = [] }: Page, files: File[]): string[] {
  return pictures.map((name) => {
    const picture = files.find((file) => file.type === 'asset' && file.names.includes(name));
    if (!picture) throw new Error(`ask-early: no picture ${name}`);
    return picture.fileName;
  });
}

const settings = '<link rel="preload" href="/api/config" as="fetch" crossorigin />';

// Written as text: it runs in the page before anything else, so nothing may compile or import into it.
const ask = `function (needs) {
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
