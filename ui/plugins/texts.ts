import ts from 'typescript';

/** A text that the page marks for translation. */
export type Text = { message: string; line: number };

/** A visible text outside `t`, `plural`, `rich` and `msg`, or a call that runs before the language is known. */
export type Stray = { text: string; line: number; why: string };

/** Attributes and properties whose strings people see or hear. */
const VISIBLE = new Set([
  'action',
  'alt',
  'aria-description',
  'aria-label',
  'aria-roledescription',
  'aria-valuetext',
  'detail',
  'empty',
  'failure',
  'hint',
  'label',
  'placeholder',
  'problem',
  'reason',
  'summary',
  'text',
  'title',
  'verb',
]);

/** What the name of a field, an icon or a tool looks like. Any other name of a component is shown. */
const IDENTIFIER = /^[a-z-]+$/;

/** Calls whose strings people see. */
const SHOWING = new Set(['UserError', 'notifyError', 'notifyInfo', 'notifySuccess']);

/** Marks that translate at once, and therefore only inside functions. */
const IMMEDIATE = new Set(['t', 'plural', 'rich']);

/** Names that are the same in every language. */
const SAME_EVERYWHERE = /\b(Retouch|PNG|JPG|WebP|SHA|px|X)\b/g;

/** What people see of the data in JSON files. */
const VISIBLE_DATA = ['alt', 'credit', 'note', 'result', 'text', 'title'];

/** Returns the visible texts of a JSON file with a list of objects. */
export function textsOfData(json: string): Text[] {
  const items: Record<string, unknown>[] = JSON.parse(json);
  return items.flatMap((item) =>
    VISIBLE_DATA.flatMap((name) => {
      const value = item[name];
      return typeof value === 'string' ? [{ message: value, line: 1 }] : [];
    }),
  );
}

/** Returns what `t`, `msg`, `rich` and `plural` mark in a file, plurals in ICU's notation. */
export function textsOf(fileName: string, code: string): Text[] {
  const texts: Text[] = [];
  const file = parse(fileName, code);
  visit(file, (node) => {
    if (!ts.isCallExpression(node) || !ts.isIdentifier(node.expression)) return;
    const name = node.expression.text;
    const [first, second] = node.arguments;
    if ((name === 't' || name === 'msg' || name === 'rich') && first && ts.isStringLiteralLike(first)) {
      texts.push({ message: first.text, line: lineOf(file, node) });
    }
    if (name === 'plural' && second && ts.isObjectLiteralExpression(second)) {
      texts.push({ message: icuOf(second), line: lineOf(file, node) });
    }
  });
  return texts;
}

/** Returns the visible texts of a file that no mark surrounds. */
export function straysOf(fileName: string, code: string): Stray[] {
  const strays: Stray[] = [];
  const file = parse(fileName, code);
  const add = (node: ts.Node, text: string, why: string) =>
    strays.push({ text: text.replace(/\s+/g, ' ').trim(), line: lineOf(file, node), why });
  visit(file, (node) => {
    if (ts.isJsxText(node)) {
      if (hasWords(node.text)) add(node, node.text, 'text in JSX');
    } else if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) {
      const text = ts.isTemplateExpression(node) ? literalPartsOf(node) : node.text;
      if (!hasWords(text)) return;
      const why = visibilityOf(node, text);
      if (why) add(node, text, why);
    } else if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) {
      const name = node.expression.text;
      if (IMMEDIATE.has(name) && !isInsideFunction(node)) {
        add(node, node.getText(), `${name}() outside a function, before the language is known: use msg()`);
      }
    }
  });
  return strays;
}

const hasWords = (text: string) => /\p{L}/u.test(text.replace(SAME_EVERYWHERE, ''));

/** Says where a string becomes visible; null if it does not. */
function visibilityOf(start: ts.Node, text: string): string | null {
  let node = start;
  // Follows the expressions that pass a string on.
  while (
    ts.isConditionalExpression(node.parent) ||
    ts.isParenthesizedExpression(node.parent) ||
    ts.isArrayLiteralExpression(node.parent) ||
    ts.isTemplateSpan(node.parent) ||
    (ts.isTemplateExpression(node.parent) && node !== start) ||
    (ts.isBinaryExpression(node.parent) && isPassing(node.parent, node))
  ) {
    if (ts.isConditionalExpression(node.parent) && node.parent.condition === node) return null;
    node = node.parent;
  }
  const { parent } = node;
  if (ts.isJsxAttribute(parent)) return visibleAttribute(parent, text);
  if (ts.isJsxExpression(parent)) {
    const owner = parent.parent;
    return ts.isJsxAttribute(owner) ? visibleAttribute(owner, text) : 'text in JSX';
  }
  if (ts.isPropertyAssignment(parent) && parent.initializer === node) {
    return visibleName(parent.name.getText().replaceAll("'", ''));
  }
  if ((ts.isCallExpression(parent) || ts.isNewExpression(parent)) && ts.isIdentifier(parent.expression)) {
    const called = parent.expression.text;
    return SHOWING.has(called) && parent.arguments?.includes(node as ts.Expression) ? `${called}()` : null;
  }
  return null;
}

function isPassing({ operatorToken, left }: ts.BinaryExpression, node: ts.Node): boolean {
  switch (operatorToken.kind) {
    case ts.SyntaxKind.PlusToken:
      return true;
    case ts.SyntaxKind.AmpersandAmpersandToken:
    case ts.SyntaxKind.BarBarToken:
    case ts.SyntaxKind.QuestionQuestionToken:
      return left !== node;
    default:
      return false;
  }
}

function visibleAttribute(attribute: ts.JsxAttribute, text: string): string | null {
  const name = attribute.name.getText();
  if (name !== 'name') return visibleName(name);
  const isOfComponent = /^[A-Z]/.test(attribute.parent.parent.tagName.getText());
  return isOfComponent && !IDENTIFIER.test(text.trim()) ? name : null;
}

function visibleName(name: string): string | null {
  return VISIBLE.has(name) ? name : null;
}

function isInsideFunction(node: ts.Node): boolean {
  for (let { parent } = node; parent; parent = parent.parent) if (ts.isFunctionLike(parent)) return true;
  return false;
}

function literalPartsOf({ head, templateSpans }: ts.TemplateExpression): string {
  return [head.text, ...templateSpans.map(({ literal }) => literal.text)].join(' ');
}

function icuOf(forms: ts.ObjectLiteralExpression): string {
  const cases = forms.properties.map((property) => {
    if (!ts.isPropertyAssignment(property) || !ts.isStringLiteralLike(property.initializer)) {
      throw new Error(`plural() needs literal forms: ${forms.getText()}`);
    }
    return `${property.name.getText()} {${property.initializer.text}}`;
  });
  return `{count, plural, ${cases.join(' ')}}`;
}

function parse(fileName: string, code: string): ts.SourceFile {
  return ts.createSourceFile(fileName, code, ts.ScriptTarget.Latest, true);
}

function visit(node: ts.Node, see: (node: ts.Node) => void) {
  // Types and imports contain strings that nobody sees.
  if (ts.isTypeNode(node) || ts.isImportDeclaration(node)) return;
  see(node);
  ts.forEachChild(node, (child) => visit(child, see));
}

function lineOf(file: ts.SourceFile, node: ts.Node): number {
  return file.getLineAndCharacterOfPosition(node.getStart()).line + 1;
}
