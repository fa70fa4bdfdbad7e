import { type ComponentProps, type ReactNode, useId } from 'react';
import { classNames } from '@/lib/class-names';

type TextFieldProps = Omit<ComponentProps<'input'>, 'id' | 'onChange' | 'className'> & {
  label: string;
  onValue: (value: string) => void;
  /** The id of the text that explains why the value is rejected; null if it is not. */
  problemId?: string | null;
  /** Whether it is only as wide as a number. */
  isNarrow?: boolean;
  /** A button beside the input. */
  children?: ReactNode;
};

/** An input of one line below its label. */
export function TextField(props: TextFieldProps) {
  const { label, onValue, problemId = null, isNarrow, children, ...input } = props;
  const id = useId();
  return (
    <div className="grid gap-2">
      <label htmlFor={id} className="font-semibold">
        {label}
      </label>
      <div className="flex flex-wrap gap-3">
        <input
          autoComplete="off"
          {...input}
          id={id}
          aria-invalid={problemId !== null}
          aria-describedby={problemId || undefined}
          onChange={(event) => onValue(event.target.value)}
          className={classNames(
            'min-h-11 min-w-0 rounded-md border bg-surface px-3 placeholder:text-soft',
            isNarrow ? 'w-32' : 'flex-1 basis-48',
            problemId ? 'border-danger' : 'border-control',
          )}
        />
        {children}
      </div>
    </div>
  );
}
