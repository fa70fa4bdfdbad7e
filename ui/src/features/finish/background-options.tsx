import { type ReactNode, useRef, useState } from 'react';
import { FieldProblem } from '@/components/field-problem';
import { Icon } from '@/components/icon';
import { classNames } from '@/lib/class-names';
import { useConfig } from '@/lib/env';
import { readImageSize } from '@/lib/image-size';
import { isTooBig, tooBigText } from '@/lib/max-dimension';
import { isCommon } from '@/lib/picture-kind';
import { msg, t } from '@/lib/translate';
import { tooLargeText } from '@/lib/upload-size';
import { GradientOptions } from './gradient-options';
import { type Background, gradientCss } from './look';
import { Range } from './range';

type BackgroundOptionsProps = {
  background: Background | null;
  onBackground: (background: Background | null) => void;
  /** Offers only the options that a preview can show without drawing. */
  isSimple?: boolean;
};

// Colors for the user's picture, not for the page: the same in both themes.
const swatches = [
  { name: msg('White'), color: '#ffffff' },
  { name: msg('Light gray'), color: '#e5e7eb' },
  { name: msg('Black'), color: '#000000' },
  { name: msg('Cream'), color: '#f5ecd9' },
  { name: msg('Rose'), color: '#f9d5d8' },
  { name: msg('Sky'), color: '#cfe5fb' },
  { name: msg('Mint'), color: '#cdeedd' },
  { name: msg('Yellow'), color: '#fde68a' },
];

const round =
  'relative forced-color-adjust-none grid size-8 thumb:size-11 cursor-pointer place-items-center overflow-hidden rounded-full ring-offset-2 ring-offset-surface has-focus-visible:outline-2 has-focus-visible:outline-offset-4 has-focus-visible:outline-accent';
const ringStyle = (isChosen: boolean) =>
  isChosen ? 'ring-2 ring-accent' : 'ring-1 ring-control hover:ring-2';

const firstGradient = { from: '#e0e7ff', to: '#fce7f3', angle: 180 };
const FIRST_BLUR = 2;

/** Chooses the background of a cutout. The download includes it. */
export default function BackgroundOptions(props: BackgroundOptionsProps) {
  const { limits } = useConfig();
  const { background, onBackground, isSimple = false } = props;
  const [problem, setProblem] = useState<string | null>(null);
  const color = background && 'color' in background ? background.color : null;
  const picture = background && 'url' in background ? background : null;
  const gradient = background && 'gradient' in background ? background.gradient : null;
  const blur = background && 'blur' in background ? background.blur : null;
  const isCustomColor = color !== null && !swatches.some((swatch) => swatch.color === color);

  function change(next: Background | null) {
    setProblem(null);
    onBackground(next);
  }

  /** Why the server would refuse a picture as a background; null if it takes it. */
  async function problemOf(chosen: File, url: string): Promise<string | null> {
    const unreadable = t('We can’t read this file as an image. Choose a JPG, PNG or WebP file.');
    if (!isCommon(chosen)) return unreadable;
    const size = await readImageSize(url).catch(() => null);
    if (!size) return unreadable;
    if (isTooBig(size, limits.maxDimension)) return tooBigText(limits.maxDimension);
    return tooLargeText(chosen, limits.maxUploadBytes);
  }

  async function choose(chosen: File) {
    const url = URL.createObjectURL(chosen);
    const problem = await problemOf(chosen, url);
    if (!problem) return change({ picture: chosen, url });
    URL.revokeObjectURL(url);
    setProblem(problem);
  }

  return (
    <fieldset className="grid min-w-0 gap-3">
      <legend className={isSimple ? 'sr-only' : 'mb-2 text-sm font-semibold'}>{t('Background')}</legend>
      <div className="flex flex-wrap items-center gap-2.5">
        <Swatch name={t('Transparent')} isChosen={background === null} onChoose={() => change(null)}>
          <span className="checkerboard absolute inset-0" />
        </Swatch>
        {swatches.map((swatch) => (
          <Swatch
            key={swatch.color}
            name={t(swatch.name)}
            isChosen={color === swatch.color}
            onChoose={() => change({ color: swatch.color })}
          >
            <span className="absolute inset-0" style={{ background: swatch.color }} />
          </Swatch>
        ))}
        {!isSimple && (
          <>
            <Swatch
              name={t('Gradient')}
              isChosen={gradient !== null}
              onChoose={() => change({ gradient: firstGradient })}
            >
              <span
                className="absolute inset-0"
                style={{ background: gradientCss(gradient ?? firstGradient) }}
              />
            </Swatch>
            <Swatch
              name={t('Blurred original')}
              isChosen={blur !== null}
              onChoose={() => change({ blur: FIRST_BLUR })}
            >
              <span className="absolute inset-0 bg-[radial-gradient(#7c9a76,#c9b79c_55%,#8fb3d0)] blur-[2px]" />
            </Swatch>
          </>
        )}
        <CustomColor color={color} isChosen={isCustomColor} onColor={(next) => change({ color: next })} />
        <CustomPicture url={picture?.url ?? null} onFile={choose} />
      </div>
      {gradient && (
        <GradientOptions gradient={gradient} onGradient={(next) => onBackground({ gradient: next })} />
      )}
      {blur !== null && (
        <Range
          label={t('Blur')}
          unit="%"
          min={0.1}
          max={5}
          step={0.1}
          value={blur}
          onValue={(next) => onBackground({ blur: next })}
        />
      )}
      {problem && <FieldProblem>{problem}</FieldProblem>}
      {isSimple && (
        <p className="text-xs text-soft">
          {t('Downloads include the background. JPG has no transparency, so those areas become white.')}
        </p>
      )}
    </fieldset>
  );
}

type SwatchProps = { name: string; isChosen: boolean; onChoose: () => void; children: ReactNode };

function Swatch({ name, isChosen, onChoose, children }: SwatchProps) {
  return (
    <label title={name} className={classNames(round, ringStyle(isChosen))}>
      {children}
      <input
        type="radio"
        name="background"
        aria-label={name}
        checked={isChosen}
        onChange={onChoose}
        className="sr-only"
      />
    </label>
  );
}

type CustomColorProps = { color: string | null; isChosen: boolean; onColor: (color: string) => void };

function CustomColor({ color, isChosen, onColor }: CustomColorProps) {
  return (
    <label title={t('Custom color')} className={classNames(round, ringStyle(isChosen))}>
      <span
        className="absolute inset-0"
        style={{
          background: isChosen && color ? color : 'conic-gradient(#f66, #fd6, #6d6, #6cf, #86f, #f6c, #f66)',
        }}
      />
      <input
        type="color"
        aria-label={t('Custom color')}
        value={color ?? '#ffffff'}
        onChange={({ target }) => onColor(target.value)}
        className="absolute inset-0 size-full cursor-pointer opacity-0"
      />
    </label>
  );
}

/** `url` is the object URL of the chosen picture. */
type CustomPictureProps = { url: string | null; onFile: (file: File) => void };

function CustomPicture({ url, onFile }: CustomPictureProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        accept="image/png,image/jpeg,image/webp"
        aria-label={t('Background picture')}
        hidden
        onChange={({ target }) => {
          const chosen = target.files?.[0];
          if (chosen) onFile(chosen);
          // Lets the user choose the same file again.
          target.value = '';
        }}
      />
      <button
        type="button"
        aria-pressed={url !== null}
        onClick={() => input.current?.click()}
        className={classNames(
          'inline-flex min-h-10 thumb:min-h-11 items-center gap-2 rounded-full px-4 text-sm font-medium ring-offset-2 ring-offset-surface',
          ringStyle(url !== null),
        )}
      >
        {url ? (
          <img src={url} alt="" className="-ml-2 size-7 rounded-full object-cover" />
        ) : (
          <Icon name="image" />
        )}
        {t('Custom picture')}
      </button>
    </>
  );
}
