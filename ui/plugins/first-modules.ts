import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';

/** Where the page starts, and what the server may say on any page. */
const ROOTS = ['src/main.tsx', 'src/languages/server-texts.ts'];

/** Returns the page's code and data by path, without tests. */
export function readSources(): Map<string, string> {
  return new Map(
    readdirSync('src', { recursive: true, encoding: 'utf8' })
      .filter((path) => /\.(tsx?|json)$/.test(path) && !/\.test\.|^testing\/|^api\//.test(path))
      .map((path) => [`src/${path}`, readFileSync(`src/${path}`, 'utf8')]),
  );
}

/**
 * Returns the modules that may run without the later texts: all that the page imports, at once or on demand, but not
 * through `withLaterTexts` or a function that is named after it. A `server-texts.ts` belongs to the code beside it, which
 * shows what the server says.
 */
export function firstModules(sources: Map<string, string>): Set<string> {
  const found = new Set<string>();
  function add(base: string) {
    const path = [base, `${base}.ts`, `${base}.tsx`].find((path) => sources.has(path));
    // Packages, pictures and styles contain no texts.
    if (!path || found.has(path)) return;
    found.add(path);
    add(join(dirname(path), 'server-texts'));
    for (const name of importsOf(path, sources.get(path) ?? '')) {
      add(name.startsWith('@/') ? `src/${name.slice(2)}` : join(dirname(path), name));
    }
  }
  for (const root of ROOTS) add(root);
  return found;
}

/** Returns what a module imports, except with the later texts. */
function importsOf(path: string, code: string): string[] {
  if (path.endsWith('.json')) return [];
  const names: string[] = [];
  function visit(node: ts.Node) {
    if (ts.isCallExpression(node) && /withLaterTexts$/i.test(node.expression.getText())) return;
    const name = importedBy(node);
    if (name && ts.isStringLiteral(name)) names.push(name.text);
    ts.forEachChild(node, visit);
  }
  visit(ts.createSourceFile(path, code, ts.ScriptTarget.Latest, true));
  return names;
}

function importedBy(node: ts.Node): ts.Expression | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier;
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    return node.arguments[0];
  }
}
