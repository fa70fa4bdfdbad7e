import { useEffect, useEffectEvent, useState } from 'react';
import type { EditingTool } from '@/features/catalog/tool';
import { failureText } from '@/lib/failure-text';
import {
  attendFreeRuns,
  isBusy,
  isRefusal,
  resetFreeRun,
  resumeFreeRun,
  startFreeRun,
  useFreeRuns,
} from './free-runs';
import { keptRun } from './kept-run';

/** A visitor's run: uploads the file, follows the job without a token, and returns one picture. */
export function useFreeRun(tool: EditingTool) {
  const run = useFreeRuns((runs) => runs[tool.name]);
  const { file = null, error = null } = run ?? {};
  /** The object URL of its file. */
  const [originalUrl, setOriginalUrl] = useState<string | null>(null);
  const resume = useEffectEvent(() => resumeFreeRun(tool));
  useEffect(() => resume(), []);
  useEffect(() => attendFreeRuns(tool), [tool]);
  useEffect(() => {
    if (!file) return;
    const url = URL.createObjectURL(file);
    setOriginalUrl(url);
    return () => {
      URL.revokeObjectURL(url);
      setOriginalUrl(null);
    };
  }, [file]);

  const isRefused = isRefusal(error);

  return {
    start: (image: File) => startFreeRun(tool, image),
    // On the first render, an earlier run has not been taken up again yet.
    isBusy: run ? isBusy(run) : keptRun(tool.name) !== null,
    uploadFraction: run?.uploadFraction ?? null,
    job: run?.job ?? null,
    result: run?.result ?? null,
    originalUrl,
    isRefused,
    advice: error && !isRefused ? failureText(error) : null,
    reset: () => resetFreeRun(tool),
  };
}
