import { EditorIcon, type EditorIconName } from './editor-icon';

type ToolButtonProps = {
  icon: EditorIconName;
  label: string;
  title?: string;
  disabled?: boolean;
  onClick: () => void;
};

export function ToolButton({ icon, label, title = label, disabled, onClick }: ToolButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={title}
      disabled={disabled}
      onClick={onClick}
      className="grid size-10 thumb:size-11 place-items-center rounded-sm hover:bg-sunken disabled:cursor-not-allowed disabled:text-soft disabled:opacity-60"
    >
      <EditorIcon name={icon} />
    </button>
  );
}
