import { paths } from '@/lib/paths';
import { queryKeys } from '@/lib/query-keys';
import { msg } from '@/lib/translate';
import type { EditingTool } from './tool';

export const upscale: EditingTool = {
  name: 'upscale',
  icon: 'upscale',
  pagePath: paths.upscale,
  isCutout: false,
  limit: 'maxUpscaleDimension',
  paid: [
    { path: '/api/upscale/upscale-ai-2', factor: 2, label: msg('Upscale 2X') },
    { path: '/api/upscale/upscale-ai-4', factor: 4, label: msg('Upscale 4X') },
  ],
  free: { path: '/api/upscale/upscale-free', factor: 2, label: msg('Free Upscale') },
  freeRun: 'upscale',
  visitorPath: '/api/free/upscale-fr',
  resultsPath: '/api/upscale/{imageId}',
  resultsKey: queryKeys.upscaledImages,
  texts: {
    listFailed: msg('Failed to load upscaled images'),
    runFailed: msg('Failed to upscale'),
    visitorRunFailed: msg('Failed to upscale'),
    freeExists: msg('Free upscale image already created'),
    section: msg('Upscaled'),
    result: msg('Upscaled result'),
    visitorIntro: msg(
      'Double the size of one image, free and without an account. Made for drawings and small previews: skin and fur look drawn. We delete it after an hour.',
    ),
    withAccount: msg('With an account you can go up to 4X.'),
    postprocess: msg('Joining the tiles'),
    patience: msg('The larger the image, the longer it takes'),
  },
};
