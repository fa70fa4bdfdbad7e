import { paths } from '@/lib/paths';
import { queryKeys } from '@/lib/query-keys';
import type { Tool } from './tool';

export const magicFix: Tool = {
  name: 'magic-fix',
  icon: 'magic',
  pagePath: paths.magic,
  isCutOut: false,
  limit: 'maxDimension',
  resultsPath: '/api/magic-images/{imageId}',
  resultsKey: queryKeys.magicImages,
  texts: {
    listFailed: 'Failed to load magic fix images',
    runFailed: 'Failed to magic fix image, please try again',
    section: 'Magic fixed',
    result: 'Magic fixed result',
    postprocess: 'Blending it into your image',
    patience: 'The larger the area, the longer it takes',
  },
};
