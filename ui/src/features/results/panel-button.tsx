import { Button } from '@/components/button';
import { type Background, backgroundCss } from '@/features/finish/look';

type PanelButtonProps = {
  name: string;
  background: Background | null;
  isOpen: boolean;
  onToggle: () => void;
  onPrefetch: () => void;
};

/** Opens the panel below the downloads; shows the background that is chosen there. */
export function PanelButton({ name, background, isOpen, onToggle, onPrefetch }: PanelButtonProps) {
  return (
    <Button
      variant="secondary"
      className="max-sm:grow max-sm:px-3"
      aria-expanded={isOpen}
      onPointerEnter={onPrefetch}
      onClick={onToggle}
    >
      <span
        className="checkerboard size-5 rounded-full ring-1 ring-control"
        style={{ background: backgroundCss(background) }}
      />
      {name}
    </Button>
  );
}
