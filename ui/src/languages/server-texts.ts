import { msg } from '@/lib/translate';

/*
 * What the API says in English and the page shows: `dataText` and `problemText` find its translation. Numbers are the
 * placeholders {0}, {1} and so on, in their order. The page never imports this file, so English costs nothing. A sentence
 * that only one feature shows may be in a `server-texts.ts` beside its code: `plugins/first-modules.ts` keeps them together.
 */

/** Sentences of the API and of workers. */
export const sentences = [
  // api/src/error.rs
  msg('This account was deleted. To start a new one, sign in on the website.'),
  msg('Image not found'),
  msg('File not found'),
  msg('Result not found'),
  msg('Job not found'),
  msg('The upload took too long. Please try again.'),
  msg('The run was canceled.'),
  msg('The file is too large (max {0} MB).'),
  msg('The file is too large (max {0} KB).'),
  msg("We can't read this file as an image. Use PNG, JPEG, WebP, HEIC or AVIF."),
  msg('Image dimensions too big (Max {0}x{1})'),
  msg('This image is damaged or incomplete.'),
  msg('Nothing stands out there. Click somewhere else, draw a box around what you want, or use the brush.'),
  msg('Failed to redirect to payment, please try again later'),
  msg('Something went wrong on our side. Please try again.'),
  msg("We don't know whether this run has started. Check your runs before you start it again."),
  msg('The service is starting or under maintenance. Please try again in a moment.'),
  msg('Images are temporarily unavailable. Please try again shortly.'),
  msg('The service is busy. Please try again in a moment.'),
  msg('Too many images are being processed. Please try again shortly.'),
  msg('Too many uploads are in progress. Please try again shortly.'),
  msg('Too many requests are in progress. Please try again shortly.'),
  msg('Storing the image took too long. Please try again.'),
  msg("We can't sign files at the moment. Please try again later."),
  msg('No worker can make a sample of this image right now. Try again later.'),
  msg('This image needs more memory than the server allows for one image. Please send it with fewer pixels.'),
  msg('The file is empty.'),
  msg('The upload is incomplete or malformed.'),
  // api/src/limits/rate_limits
  msg('You can start {0} runs per minute. Try again in {1} seconds.'),
  msg('You can start {0} uploads per minute. Try again in {1} seconds.'),
  msg('You can start {0} selections per minute. Try again in {1} seconds.'),
  msg('You can start {0} samples per minute. Try again in {1} seconds.'),
  msg('You can start {0} renders per minute. Try again in {1} seconds.'),
  msg('You can start {0} purchases per minute. Try again in {1} seconds.'),
  msg('Too many free runs from your network. Try again in {0} minutes, or sign up.'),
  msg('Too many uploads from your network. Try again in {0} minutes, or sign up.'),
  msg('Too many samples from your network. Try again in {0} minutes, or sign up.'),
  msg('Your storage is full (max {0} GB). Delete images or results to make room.'),
  msg('Your storage is full (max {0} MB). Delete images or results to make room.'),
  msg('Your storage is full (max {0} pictures). Delete images or results to make room.'),
  msg('Your storage is full (max {0} GB and {1} pictures). Delete images or results to make room.'),
  // core/src/jobs/submit.rs, prompts/src/lib.rs
  msg('Not enough credits'),
  msg('Too many runs are waiting. Try again in a minute.'),
  msg('Too many free runs are waiting. Try again in a minute.'),
  msg('Too many of your runs are waiting. Try again when some have finished.'),
  msg('Prompt is required'),
  msg('Prompt is too long, maximum of {0} letters is allowed'),
  // pixels/src/error.rs
  msg('The mask must be a PNG.'),
  msg('The mask file is damaged.'),
  msg('The mask covers the whole image; leave a part of it unpainted.'),
  // worker/src/job/failure.rs
  msg("We can't sign results at the moment. You have not been charged; please try again later."),
  msg('This image is no longer stored. Please upload it again.'),
  msg('Our image storage is temporarily unavailable. You have not been charged; please try again shortly.'),
  msg('Our database is temporarily unavailable. You have not been charged; please try again shortly.'),
  msg('This tool is temporarily unavailable. You have not been charged; please try again later.'),
  msg('This image is damaged or incomplete. You have not been charged; please try another file.'),
  msg('This image is too large for this tool. You have not been charged.'),
  msg('We found no subject in this image. You have not been charged; please try another image.'),
  msg("We can't use animations. You have not been charged; please upload one frame as an image."),
  msg('Your selection covers the whole image. You have not been charged; please leave a part of it out.'),
  msg("We can't use this selection. You have not been charged; please draw it again."),
  msg('The selected area is transparent. You have not been charged; please select something else.'),
  msg('The safety check blocked the result. You have not been charged.'),
  msg('Something went wrong with this image on our side. You have not been charged.'),
  msg('The run was canceled. You have not been charged.'),
  msg('The run took too long and was canceled. You have not been charged.'),
];

/** What a code means, for sentences that are not above. English shows the API's own sentence. */
export const codes = [
  msg('code:mask_invalid'),
  msg('code:mask_empty'),
  msg('code:nothing_found'),
  msg('code:prompt_required'),
  msg('code:prompt_too_long'),
  msg('code:prompt_not_possible'),
  msg('code:storage_full'),
  msg('code:image_missing'),
  msg('code:image_unreadable'),
  // pixels/src/decode/foreign.rs
  msg('code:image_raw'),
  msg('code:image_drawing'),
  msg('code:image_animation'),
  msg('code:image_video'),
  msg('code:image_document'),
  msg('code:image_other_format'),
  msg('code:image_format_unavailable'),
  msg('code:image_too_large'),
  msg('code:image_without_subject'),
  msg('code:storage_unavailable'),
  msg('code:model_unavailable'),
  msg('code:result_unsafe'),
  msg('code:out_of_memory'),
  msg('code:internal_error'),
  msg('code:credentials_unavailable'),
];

/** Labels of packs (core/src/credits/packs.rs) and the states of orders (core/src/orders.rs). */
export const labels = [
  msg('Cheapest'),
  msg('Most popular'),
  msg('Best Value'),
  msg('{0}% More Value'),
  msg('open'),
  msg('unpaid'),
  msg('paid'),
  msg('failed'),
  msg('expired'),
  msg('refunded'),
  msg('disputed'),
];
