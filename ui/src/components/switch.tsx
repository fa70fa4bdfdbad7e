type SwitchProps = {
  label: string;
  isOn: boolean;
  onSwitch: (isOn: boolean) => void;
  'aria-describedby'?: string;
};

export function Switch({ label, isOn, onSwitch, ...rest }: SwitchProps) {
  return (
    <label className="flex min-h-10 thumb:min-h-11 w-fit cursor-pointer items-center gap-3 font-semibold">
      <input
        type="checkbox"
        role="switch"
        checked={isOn}
        aria-checked={isOn}
        {...rest}
        onChange={({ target }) => onSwitch(target.checked)}
        className="size-5 accent-accent"
      />
      {label}
    </label>
  );
}
