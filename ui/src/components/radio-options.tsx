import type { ReactNode } from 'react';
import { classNames } from '@/lib/class-names';

/** A bar of options; one is chosen. */
export function RadioGroup({ label, children }: { label: string; children: ReactNode }) {
  return (
    <fieldset aria-label={label} className="flex rounded-md border border-line bg-surface p-0.5">
      {children}
    </fieldset>
  );
}

type RadioOptionProps = {
  /** The same for all options of a group. */
  name: string;
  label: string;
  title: string;
  isChosen: boolean;
  onChoose: () => void;
  className?: string;
  children: ReactNode;
};

/** An icon, with or without a word beside it. */
export function RadioOption(props: RadioOptionProps) {
  const { name, label, title, isChosen, onChoose, className, children } = props;
  return (
    <label
      title={title}
      className={classNames(
        'inline-flex h-10 thumb:h-11 min-w-10 thumb:min-w-11 cursor-pointer items-center justify-center gap-1.5 rounded-sm has-focus-visible:outline-2 has-focus-visible:outline-accent',
        isChosen ? 'bg-accent-wash text-accent' : 'text-soft hover:bg-sunken hover:text-ink',
        className,
      )}
    >
      <input
        type="radio"
        name={name}
        aria-label={label}
        checked={isChosen}
        onChange={onChoose}
        className="sr-only"
      />
      {children}
    </label>
  );
}
