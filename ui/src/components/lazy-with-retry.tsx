import { Component, type ComponentType, lazy, type ReactNode, useState } from 'react';
import { loadWithRetry } from '@/lib/load-with-retry';
import { t } from '@/lib/translate';
import { Button } from './button';
import { Notice } from './notice';

type Loaded<Props> = { default: ComponentType<Props> };
type FailureProps = { onTryAgain: () => void };

/**
 * Like `lazy`, for a part of a page. If its code cannot be loaded, only this part says so, and offers to try again.
 * `Failure` replaces that message; null is for parts that can be missing without notice.
 */
export function lazyWithRetry<Props extends object>(
  load: () => Promise<Loaded<Props>>,
  Failure: ComponentType<FailureProps> | null = PartFailure,
) {
  const create = () => lazy(() => loadWithRetry(load));
  // React remembers a failed load, so a new attempt needs a new component.
  let Part = create();

  return function LazyPart(props: Props) {
    const [attempt, setAttempt] = useState(0);
    function tryAgain() {
      Part = create();
      setAttempt(attempt + 1);
    }
    return (
      <Boundary key={attempt} fallback={Failure && <Failure onTryAgain={tryAgain} />}>
        <Part {...(props as Props & { ref?: never })} />
      </Boundary>
    );
  };
}

class Boundary extends Component<{ fallback: ReactNode; children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    return this.state.hasFailed ? this.props.fallback : this.props.children;
  }
}

function PartFailure({ onTryAgain }: FailureProps) {
  return (
    <Notice tone="error">
      {t('This part of the page could not be loaded.')}{' '}
      <Button variant="quiet" size="sm" className="underline" onClick={onTryAgain}>
        {t('Try again')}
      </Button>
    </Notice>
  );
}
