import { Link, type LinkProps } from 'react-router';
import { type ButtonLook, type ButtonSize, buttonStyle } from './button-style';

type ButtonLinkProps = LinkProps & { look?: ButtonLook; size?: ButtonSize; className?: string };

export function ButtonLink({ look, size, className, ...rest }: ButtonLinkProps) {
  return <Link className={buttonStyle(look, size, className)} {...rest} />;
}
