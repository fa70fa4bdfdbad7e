export const imageTexts = {
  noImages: 'No images to show',
  listFailed: 'Failed to load images. Please try again later',
  listFailedToast: 'Failed to load your images',
  imageFailedToast: 'Failed to load your original image',
  notFound: 'Failed to find your image',
  uploadFailed: 'Failed to upload image',
  downloadFailed: 'Failed to download images, try again later',
  deleteFailed: 'Failed to delete image, try again later',
};
