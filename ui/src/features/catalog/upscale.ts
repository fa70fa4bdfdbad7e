import { paths } from '@/lib/paths';
import { queryKeys } from '@/lib/query-keys';
import type { EditingTool } from './tool';

export const upscale: EditingTool = {
  name: 'upscale',
  icon: 'upscale',
  pagePath: paths.upscale,
  isCutOut: false,
  limit: 'maxUpscaleDimension',
  paid: [
    { path: '/api/upscale/upscale-ai-2', factor: 2, label: 'Upscale 2X' },
    { path: '/api/upscale/upscale-ai-4', factor: 4, label: 'Upscale 4X' },
  ],
  free: { path: '/api/upscale/upscale-free', factor: 2, label: 'Free Upscale' },
  freeRun: 'upscale',
  visitorPath: '/api/free/upscale-fr',
  resultsPath: '/api/upscale/{imageId}',
  resultsKey: queryKeys.upscaledImages,
  texts: {
    listFailed: 'Failed to load upscaled images',
    runFailed: 'Failed to upscale',
    visitorRunFailed: 'Failed to upscale',
    freeExists: 'Free upscale image already created',
    section: 'Upscaled',
    result: 'Upscaled result',
    visitorIntro:
      'Double the size of one image, free and without an account. Made for drawings and small previews: skin and fur look drawn. We delete it after an hour.',
    withAccount: 'With an account you can go up to 4X.',
    postprocess: 'Joining the tiles',
    patience: 'The larger the image, the longer it takes',
  },
};
