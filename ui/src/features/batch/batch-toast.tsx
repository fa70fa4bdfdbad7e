import type { NavigateFunction } from 'react-router';
import type { EditingTool } from '@/features/catalog/tool';
import { showToast, ToastLink } from '@/features/runs/run-toast';
import { newId } from '@/lib/new-id';
import { closeToast } from '@/lib/notify';
import { toolName } from '@/lib/tool-names';
import { t } from '@/lib/translate';
import type { BatchItem, ItemState } from './batch-store';
import { batchSummary } from './batch-summary';

/** Shows how a batch ended whose page is not open, with a link to it. */
export function showBatchToast(
  { name, pagePath }: EditingTool,
  items: BatchItem[],
  navigate: NavigateFunction,
) {
  const has = (...kinds: ItemState['kind'][]) => items.some(({ state }) => kinds.includes(state.kind));
  const kind = has('failed', 'unpaid') ? 'error' : has('done') ? 'success' : 'info';
  const id = newId();
  function follow() {
    void navigate(pagePath);
    void closeToast(id);
  }
  const link = <ToastLink to={pagePath} text={t('Show it')} onFollow={follow} />;
  const text = t('{tool}: {summary}', { tool: toolName(name), summary: batchSummary(items) });
  showToast(kind, id, text, link);
}
