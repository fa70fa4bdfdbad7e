import { paths } from '@/lib/paths';
import { queryKeys } from '@/lib/query-keys';
import { msg } from '@/lib/translate';
import type { EditingTool } from './tool';

export const removeBackground: EditingTool = {
  name: 'remove-background',
  icon: 'cutout',
  pagePath: paths.removeBackground,
  isCutout: true,
  limit: 'maxDimension',
  paid: [{ path: '/api/rmbg-images/remove-bg-ai', factor: null, label: msg('Remove Bg AI') }],
  free: { path: '/api/rmbg-images/remove-bg-free', factor: null, label: msg('Remove Bg') },
  freeRun: 'removeBackground',
  visitorPath: '/api/free/remove-bg-fr',
  resultsPath: '/api/rmbg-images/{imageId}',
  resultsKey: queryKeys.rmbgImages,
  texts: {
    listFailed: msg('Failed to load images with removed background'),
    runFailed: msg('Failed to remove image background'),
    visitorRunFailed: msg('Failed to remove background, try again later'),
    freeExists: msg('Free background remove image already created'),
    section: msg('Background removed'),
    result: msg('Result without its background'),
    visitorIntro: msg(
      'Cut the subject out of one image, free and without an account. We delete it after an hour.',
    ),
    withAccount: msg('The AI model keeps finer edges.'),
    postprocess: msg('Refining the edges'),
    patience: msg('This usually takes a few seconds'),
  },
};
