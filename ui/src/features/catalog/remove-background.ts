import { paths } from '@/lib/paths';
import { queryKeys } from '@/lib/query-keys';
import type { EditingTool } from './tool';

export const removeBackground: EditingTool = {
  name: 'remove-background',
  icon: 'cutout',
  pagePath: paths.removeBackground,
  isCutOut: true,
  limit: 'maxDimension',
  paid: [{ path: '/api/rmbg-images/remove-bg-ai', factor: null, label: 'Remove Bg AI' }],
  free: { path: '/api/rmbg-images/remove-bg-free', factor: null, label: 'Remove Bg' },
  freeRun: 'removeBackground',
  visitorPath: '/api/free/remove-bg-fr',
  resultsPath: '/api/rmbg-images/{imageId}',
  resultsKey: queryKeys.rmbgImages,
  texts: {
    listFailed: 'Failed to load images with removed background',
    runFailed: 'Failed to remove image background',
    visitorRunFailed: 'Failed to remove background, try again later',
    freeExists: 'Free background remove image already created',
    section: 'Background removed',
    result: 'Result without its background',
    visitorIntro:
      'Cut the subject out of one image, free and without an account. We delete it after an hour.',
    withAccount: 'The AI model keeps finer edges.',
    postprocess: 'Refining the edges',
    patience: 'This usually takes a few seconds',
  },
};
