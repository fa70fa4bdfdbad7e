import { paths } from '@/lib/paths';
import { queryKeys } from '@/lib/query-keys';
import { msg } from '@/lib/translate';
import type { Tool } from './tool';

export const magicFix: Tool = {
  name: 'magic-fix',
  icon: 'magic',
  pagePath: paths.magic,
  isCutout: false,
  limit: 'maxDimension',
  resultsPath: '/api/magic-images/{imageId}',
  resultsKey: queryKeys.magicImages,
  texts: {
    listFailed: msg('Failed to load magic fix images'),
    runFailed: msg('Failed to magic fix image, please try again'),
    section: msg('Magic fixed'),
    result: msg('Magic fixed result'),
    postprocess: msg('Blending it into your image'),
    patience: msg('The larger the area, the longer it takes'),
  },
};
