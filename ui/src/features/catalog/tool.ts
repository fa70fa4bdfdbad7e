import type { IconName } from '@/components/icon';
import type { VisitorPath } from '@/lib/api-client';
import type { Config, Image, ToolName } from '@/lib/api-types';
import type { Message } from '@/lib/translate';

/** What distinguishes one tool from another. */
export type Tool = {
  name: ToolName;
  icon: IconName;
  /** The path of its start page; followed by an image id, the path of its page for that image. */
  pagePath: string;
  /** Whether its results are transparent and can have a backdrop. */
  isCutout: boolean;
  /** The installation limit on width and height that applies. */
  limit: Extract<keyof Config['limits'], 'maxDimension' | 'maxUpscaleDimension'>;
  resultsPath: ResultsPath;
  resultsKey: (imageId: string) => readonly string[];
  texts: ToolTexts;
};

/** A tool whose runs need nothing but a click, and which has a free run for visitors. */
export type EditingTool = Tool & {
  paid: ToolAction[];
  free: ToolAction;
  /** This tool's entry in an image's free runs. */
  freeRun: keyof Image['freeRuns'];
  visitorPath: VisitorPath;
  texts: VisitorTexts;
};

/** One button and the route it calls. */
export type ToolAction = { path: RunPath; factor: 2 | 4 | null; label: Message };

type RunPath =
  | '/api/rmbg-images/remove-bg-ai'
  | '/api/rmbg-images/remove-bg-free'
  | '/api/upscale/upscale-ai-2'
  | '/api/upscale/upscale-ai-4'
  | '/api/upscale/upscale-free';

/** GET takes an image id, DELETE a result id. */
type ResultsPath = '/api/rmbg-images/{imageId}' | '/api/upscale/{imageId}' | '/api/magic-images/{imageId}';

type ToolTexts = {
  listFailed: Message;
  runFailed: Message;
  /** The heading above its results on an image's page. */
  section: Message;
  /** The alt text of a result. */
  result: Message;
  /** The progress text after the model has run. */
  postprocess: Message;
  /** Shown while there is no time estimate. */
  patience: Message;
};

type VisitorTexts = {
  visitorRunFailed: Message;
  freeExists: Message;
  visitorIntro: Message;
  /** What an account adds, where `isMoreWithAccount`. */
  withAccount: Message;
};
