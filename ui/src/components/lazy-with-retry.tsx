import { Component, type ComponentType, lazy, type ReactNode, useState } from 'react';
import { loadWithRetry } from '@/lib/load-with-retry';
import { pause } from '@/lib/pause';
import { t } from '@/lib/translate';
import { Button } from './button';
import { Notice } from './notice';

type Loaded<Props> = { default: ComponentType<Props> };
type FailureProps = { onTryAgain: () => void };

/** The first pause before a part that is missing without notice is loaded again. Each further pause is twice as long. */
const FIRST_PAUSE_MS = 10_000;

/**
 * Like `lazy`, for a part of a page. If its code cannot be loaded, only this part says so, and offers to try again.
 * `Failure` replaces that message; null is for parts that can be missing without notice, and are tried again silently.
 */
export function lazyWithRetry<Props extends object>(
  load: () => Promise<Loaded<Props>>,
  Failure: ComponentType<FailureProps> | null = PartFailure,
) {
  const create = () => lazy(() => loadWithRetry(load, { canBeMissing: !Failure }));
  let Part = create();

  return function LazyPart(props: Props) {
    const [attempt, setAttempt] = useState(0);
    const tryAgain = () => setAttempt(attempt + 1);
    const onFailure = async (removal: AbortSignal) => {
      // React remembers a failed load, so a new attempt needs a new component.
      Part = create();
      if (Failure) return;
      await pause(FIRST_PAUSE_MS * 2 ** attempt, removal);
      if (!removal.aborted) tryAgain();
    };
    return (
      <Boundary key={attempt} fallback={Failure && <Failure onTryAgain={tryAgain} />} onFailure={onFailure}>
        <Part {...(props as Props & { ref?: never })} />
      </Boundary>
    );
  };
}

type BoundaryProps = {
  fallback: ReactNode;
  /** The signal aborts when the boundary is removed. */
  onFailure: (removal: AbortSignal) => void;
  children: ReactNode;
};

class Boundary extends Component<BoundaryProps, { hasFailed: boolean }> {
  override state = { hasFailed: false };
  private removal: AbortController | null = null;

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override componentDidCatch() {
    this.removal = new AbortController();
    this.props.onFailure(this.removal.signal);
  }

  override componentWillUnmount() {
    this.removal?.abort();
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
