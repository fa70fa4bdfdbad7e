import { useEffect, useRef } from 'react';
import { Button } from '@/components/button';
import { MaskIcon } from '@/features/mask/mask-icon';
import { t } from '@/lib/translate';
import BackgroundOptions from './background-options';
import { CropOptions } from './crop-options';
import type { Look } from './look';
import { ShadowOptions } from './shadow-options';
import { TouchUpToolbar } from './touch-up-toolbar';
import type { Finish, TouchUp } from './use-finish';

/** Finishes a cutout: touch-up, background, shadow and crop. The download includes them. */
export default function FinishPanel({ finish, touchUp }: { finish: Finish; touchUp: TouchUp }) {
  const { look, setLook } = finish;
  const { isTouchingUp } = finish;
  const brushButton = useRef<HTMLButtonElement>(null);
  const wasTouchingUp = useRef(isTouchingUp);
  useEffect(() => {
    // The focused button disappears with the brush.
    if (wasTouchingUp.current && !isTouchingUp) brushButton.current?.focus();
    wasTouchingUp.current = isTouchingUp;
  }, [isTouchingUp]);
  const change = (part: Partial<Look>) => setLook({ ...look, ...part });
  return (
    <section
      aria-label={t('Finish')}
      data-finishing={isTouchingUp ? undefined : ''}
      className="grid grid-cols-1 gap-4 rounded-md border border-line bg-surface p-4"
    >
      {isTouchingUp ? (
        <TouchUpToolbar finish={finish} touchUp={touchUp} />
      ) : (
        <>
          <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
            <Button
              ref={brushButton}
              variant="secondary"
              size="sm"
              onClick={() => finish.setTouchingUp(true)}
            >
              <MaskIcon name="eraser" />
              {t('Touch up the edges')}
            </Button>
            {touchUp.strokes.length > 0 && <span className="text-sm text-soft">{t('Touched up')}</span>}
          </div>
          <BackgroundOptions
            background={look.background}
            onBackground={(background) => change({ background })}
          />
          <ShadowOptions shadow={look.shadow} onShadow={(shadow) => change({ shadow })} />
          <CropOptions crop={look.crop} onCrop={(crop) => change({ crop })} />
          <p className="text-xs text-soft">
            {t(
              'Downloads and copies include all of this, in full size. The preview is close: edges, blur and shadow may differ by a shade; Zoom shows the file itself. JPG has no transparency, so those areas become white.',
            )}
          </p>
        </>
      )}
    </section>
  );
}
