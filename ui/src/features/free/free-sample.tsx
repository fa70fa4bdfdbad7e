import { type ComponentProps, Suspense, useState } from 'react';
import { Button } from '@/components/button';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { t } from '@/lib/translate';

const SamplePanel = lazyWithRetry(() => import('@/features/sample/sample-panel'));

/** Shows a detail as a paid run would make it, once the visitor asks for it. */
export function FreeSample(props: ComponentProps<typeof SamplePanel>) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Suspense>
      {isOpen ? (
        <SamplePanel {...props} />
      ) : (
        <Button variant="secondary" onClick={() => setOpen(true)}>
          {t('Compare a detail')}
        </Button>
      )}
    </Suspense>
  );
}
