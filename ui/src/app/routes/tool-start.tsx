import { Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { PageHeader } from '@/components/page-header';
import { Skeleton } from '@/components/skeleton';
import type { EditingTool } from '@/features/catalog/tool';
import { useTool } from '@/lib/env';
import { useSession } from '@/lib/session';
import { toolName } from '@/lib/tool-names';
import { t } from '@/lib/translate';
import { Installed } from './installed';

// Users need only the picker, visitors only the free tool.
const ToolPicker = lazyWithRetry(() => import('./tool-picker'));
const FreeTool = lazyWithRetry(() => import('@/features/free/free-tool'));

/** The start page of a tool: the free tool for visitors, the image picker for users. */
export function ToolStart({ tool }: { tool: EditingTool }) {
  const { isLoading, isSignedIn } = useSession();
  const visitorIntro = useTool(tool.name)?.freeAvailable ? t(tool.texts.visitorIntro) : undefined;

  return (
    <Installed name={tool.name}>
      <div className="page py-8 md:py-12 low:py-6">
        <PageHeader
          title={toolName(tool.name)}
          text={isSignedIn ? t('Choose one of your images, or upload new ones.') : visitorIntro}
        />
        <Suspense fallback={<Skeleton className="h-96 rounded-lg" />}>
          {isLoading ? (
            <Skeleton className="h-96 rounded-lg" />
          ) : isSignedIn ? (
            <ToolPicker tool={tool} />
          ) : (
            <FreeTool tool={tool} />
          )}
        </Suspense>
      </div>
    </Installed>
  );
}
