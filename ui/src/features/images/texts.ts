import { msg } from '@/lib/translate';

export const imageTexts = {
  noImages: msg('No images to show'),
  listFailed: msg('Failed to load images. Please try again later'),
  listFailedToast: msg('Failed to load your images'),
  imageFailedToast: msg('Failed to load your original image'),
  notFound: msg('Failed to find your image'),
  uploadFailed: msg('Failed to upload image'),
  downloadFailed: msg('Failed to download images, try again later'),
  deleteFailed: msg('Failed to delete image, try again later'),
};
