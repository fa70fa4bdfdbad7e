/**
 * Which other features each feature may import. A feature may only import features listed above it, so the features
 * form layers without cycles. The routes in `src/app` may import every feature.
 */
const features = {
  account: [],
  auth: [],
  catalog: [],
  checkouts: [],
  credits: [],
  examples: [],
  images: [],
  legal: [],
  mask: [],
  verify: [],
  webhooks: [],
  landing: ['examples', 'catalog'],
  runs: ['catalog'],
  batch: ['catalog', 'runs'],
  finish: ['mask'],
  results: ['catalog', 'finish', 'runs'],
  sample: ['results'],
  free: ['catalog', 'finish', 'results', 'runs', 'sample'],
  tools: ['catalog', 'results', 'runs', 'sample'],
  'magic-fix': ['catalog', 'mask', 'results', 'runs'],
};

const names = Object.keys(features);
for (const [name, imports] of Object.entries(features)) {
  const upward = imports.find(
    (other) => names.indexOf(other) < 0 || names.indexOf(other) >= names.indexOf(name),
  );
  if (upward) throw new Error(`${name} may not import ${upward}: list ${upward} above ${name}`);
}

const tests = '\\.test\\.tsx?$';
const folder = (name) => `^src/features/${name}/`;

export default {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-unresolved', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'unlisted-feature',
      comment: 'Add the feature to the table in .dependency-cruiser.mjs.',
      severity: 'error',
      from: { path: '^src/features/', pathNot: names.map(folder) },
      to: {},
    },
    ...Object.entries(features).map(([name, imports]) => ({
      name: `feature-${name}`,
      comment: 'The table in .dependency-cruiser.mjs does not allow this import.',
      severity: 'error',
      from: { path: folder(name), pathNot: tests },
      to: { path: '^src/(app|features)/', pathNot: [name, ...imports].map(folder) },
    })),
    {
      name: 'components',
      comment: 'Components do not depend on features or routes.',
      severity: 'error',
      from: { path: '^src/components/', pathNot: tests },
      to: { path: '^src/(app|features)/' },
    },
    {
      name: 'lib',
      comment: 'The library does not depend on components, features or routes.',
      severity: 'error',
      from: { path: '^src/lib/', pathNot: tests },
      to: { path: '^src/(app|components|features)/' },
    },
    {
      name: 'test-code',
      comment: 'Only tests and `npm run dev:mock` use the code in src/testing.',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/testing/', '^src/main\\.tsx$', tests] },
      to: { path: '^src/testing/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    // Type-only imports count too.
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'node', 'default'],
      mainFields: ['module', 'main', 'types'],
    },
  },
};
