import type { IconName } from '@/components/icon';
import type { VisitorPath } from '@/lib/api-client';
import type { Config, Image, ToolName } from '@/lib/api-types';

/** What is one tool's own. Everything else about following its runs and showing its results is shared. */
export type Tool = {
  name: ToolName;
  icon: IconName;
  /** Where it starts; with an image's id behind it, its page of that image. */
  address: string;
  /** Whether its results are transparent, so that something can be laid behind them. */
  isCutOut: boolean;
  /** Which of the installation's limits holds for width and height. */
  limit: Extract<keyof Config['limits'], 'maxDimension' | 'maxUpscaleDimension'>;
  resultsPath: ResultsPath;
  resultsKey: (imageId: string) => readonly string[];
  texts: ToolTexts;
};

/** A tool whose runs take nothing but a click, and of which visitors have a free one. */
export type EditingTool = Tool & {
  paid: ToolAction[];
  free: ToolAction;
  /** Which of an image's free runs is this tool's. */
  freeRun: keyof Image['freeRuns'];
  visitorPath: VisitorPath;
  texts: VisitorTexts;
};

/** One button, one route. */
export type ToolAction = { path: RunPath; factor: 2 | 4 | null; label: string };

type RunPath =
  | '/api/rmbg-images/remove-bg-ai'
  | '/api/rmbg-images/remove-bg-free'
  | '/api/upscale/upscale-ai-2'
  | '/api/upscale/upscale-ai-4'
  | '/api/upscale/upscale-free';

/** Lists with the id of an image, deletes with the id of a result. */
type ResultsPath = '/api/rmbg-images/{imageId}' | '/api/upscale/{imageId}' | '/api/magic-images/{imageId}';

type ToolTexts = {
  listFailed: string;
  runFailed: string;
  /** The heading above its results on the page of an image. */
  section: string;
  /** What a result shows, for those who cannot see it. */
  result: string;
  /** What happens after the model. */
  postprocess: string;
  /** How long a run takes, while nobody can tell exactly. */
  patience: string;
};

type VisitorTexts = {
  visitorRunFailed: string;
  freeExists: string;
  visitorIntro: string;
  /** What an account gives that a visitor does not get. */
  withAccount: string;
};
